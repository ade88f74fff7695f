// Parses requests with Boost.Beast, answers them in turn, and holds the limits of a connection.
#include "server/http/connection.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>

// An assertion of Beast's parser fails for right input: the end of a chunked body that arrives
// after its first three bytes (1.81). Input must not end the server.
#define BOOST_DISABLE_ASSERTS
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <fmt/format.h>

namespace prism::server {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kReadBytes = size_t{16} << 10;
constexpr size_t kMaxPipelinedBytes = size_t{64} << 10;
constexpr double kLingerSeconds = 2;

Connection::Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Connection::Clock::duration>(
      std::chrono::duration<double>(count));
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

struct Connection::Parsing {
  http::request_parser<http::string_body> parser;
};

Connection::Connection(std::shared_ptr<ConnectionOwner> owner, std::unique_ptr<Transport> transport,
                       std::string peer)
    : owner_(std::move(owner)),
      transport_(std::move(transport)),
      peer_(std::move(peer)),
      chunk_(kReadBytes, '\0') {}

Connection::~Connection() = default;

void Connection::expire_after(double limit) { deadline_ = Clock::now() + seconds(limit); }

bool Connection::is_idle() const { return state_ == State::reading && !has_begun_ && !is_writing_; }

void Connection::start() {
  expire_after(owner_->options.header_seconds);
  transport_->handshake([self = shared_from_this()](error_code failed) {
    if (failed) return self->close();
    self->next_request();
    self->read();
  });
}

void Connection::tick(Clock::time_point now) {
  if (state_ == State::closed) return;
  if (now > write_deadline_) return close();
  if (now > deadline_) {
    if (state_ != State::reading || !has_begun_) return close();
    return refuse(error(408, "the request did not arrive in time"));
  }
  if (state_ != State::answering || is_writing_ ||
      now - last_activity_ <= seconds(owner_->options.quiet_seconds))
    return;
  if (!has_started_ && quiet_head_) start_stream(exchange_, std::move(*quiet_head_));
  if (has_started_ && !keep_alive_piece_.empty()) write(exchange_, keep_alive_piece_);
}

void Connection::close() {
  if (state_ == State::closed) return;
  const bool was_answering = state_ == State::answering;
  state_ = State::closed;
  owner_->held_bytes -= std::exchange(held_bytes_, 0);
  transport_->close();
  const std::shared_ptr<Connection> self = shared_from_this();  // on_closed may drop the last owner
  owner_->on_closed(this);
  if (const auto tell = std::exchange(on_disconnect_, {}); was_answering && tell) tell();
}

// --- reading

void Connection::read() {
  if (is_reading_ || state_ == State::closed) return;
  if (state_ == State::answering && in_.size() >= kMaxPipelinedBytes) return;
  is_reading_ = true;
  transport_->read(chunk_, [self = shared_from_this()](error_code failed, size_t bytes) {
    self->is_reading_ = false;
    self->on_read(failed, bytes);
  });
}

void Connection::on_read(error_code failed, size_t bytes) {
  if (state_ == State::closed) return;
  // The end of the client's stream while it waits for an answer counts as its going away.
  if (failed) return close();
  if (state_ != State::lingering) {
    in_.append(chunk_.data(), bytes);
    if (state_ == State::reading) {
      if (!std::exchange(has_begun_, true)) expire_after(owner_->options.header_seconds);
      parse();
    }
  }
  read();
}

void Connection::next_request() {
  state_ = State::reading;
  has_header_ = is_head_ = has_started_ = is_complete_ = false;
  has_begun_ = !in_.empty();
  header_bytes_ = 0;
  added_headers_.clear();
  keep_alive_piece_.clear();
  quiet_head_.reset();
  request_ = {};
  parsing_ = std::make_unique<Parsing>();
  parsing_->parser.header_limit(static_cast<uint32_t>(owner_->options.max_header_bytes));
  parsing_->parser.body_limit(owner_->options.max_body_bytes);
  expire_after(has_begun_ ? owner_->options.header_seconds : owner_->options.idle_seconds);
  last_activity_ = Clock::now();
}

// The header, or the line before a chunk and the trailer after the last one: the parser limits only
// the bytes that it has not used up, and those of chunks not at all.
bool Connection::is_header_too_large() const {
  return header_bytes_ + in_.size() > owner_->options.max_header_bytes;
}

bool Connection::hold_body() {
  const size_t bytes = parsing_->parser.get().body().size();
  owner_->held_bytes += bytes - held_bytes_;
  held_bytes_ = bytes;
  const HttpOptions& o = owner_->options;
  return owner_->held_bytes <= std::max(o.max_held_bytes, o.max_body_bytes);
}

void Connection::parse() {
  static const char* const kTooLarge = "the header of the request is too large";
  size_t used = 0;
  const auto forget_used = [&] {
    in_.erase(0, used);
    used = 0;
  };
  while (state_ == State::reading && used < in_.size()) {
    error_code failed;
    const size_t bytes =
        parsing_->parser.put(boost::asio::buffer(in_.data() + used, in_.size() - used), failed);
    used += bytes;
    if (!has_header_) header_bytes_ += bytes;
    if (failed == http::error::need_more) break;
    if (failed == http::error::header_limit) return refuse(error(431, kTooLarge));
    if (failed == http::error::body_limit)
      return refuse(error(413, fmt::format("the body of the request is too large; at most {} bytes "
                                           "are read (--max-body)",
                                           owner_->options.max_body_bytes)));
    if (failed) return refuse(error(400, "the request is not valid HTTP: " + failed.message()));
    if (parsing_->parser.is_header_done() && !has_header_) {
      has_header_ = true;
      header_bytes_ = 0;
      if (!take_header()) return;
    }
    if (!hold_body()) {
      HttpReply reply =
          error(503, "the server holds too many bytes of other requests; try again later");
      reply.headers.emplace_back("retry-after", "1");
      return refuse(std::move(reply));
    }
    if (parsing_->parser.is_done()) {
      forget_used();
      return handle();
    }
    if (bytes == 0) break;
  }
  forget_used();
  if (is_header_too_large()) refuse(error(431, kTooLarge));
}

bool Connection::copy_header() {
  const auto& message = parsing_->parser.get();
  request_ = {};
  request_.peer = peer_;
  request_.method = std::string(message.method_string());
  for (const auto& field : message)
    request_.headers.emplace_back(lower(field.name_string()), std::string(field.value()));
  is_head_ = request_.method == "HEAD";
  const std::string_view target = message.target();
  const size_t question = target.find('?');
  if (question != target.npos) request_.query = std::string(target.substr(question + 1));
  return target.starts_with('/') && decode_path(target.substr(0, question), request_.path);
}

bool Connection::take_header() {
  const auto& message = parsing_->parser.get();
  ++exchange_;
  has_chunks_ = message.version() >= 11;
  keeps_alive_ = message.keep_alive();
  if (!copy_header()) {
    refuse(error(400, "the target of the request must be a path"));
    return false;
  }
  if (message.version() >= 11 && message.count(http::field::host) != 1) {
    refuse(error(400, "the request must have one Host header"));
    return false;
  }
  // Another coding, or several, would leave it open where the body ends.
  if (const size_t codings = message.count(http::field::transfer_encoding);
      codings > 1 ||
      (codings == 1 &&
       (lower(message[http::field::transfer_encoding]) != "chunked" || message.version() < 11))) {
    refuse(error(501, "the only transfer coding that is read is chunked"));
    return false;
  }
  if (owner_->options.check) {
    HttpCheck decision = owner_->options.check(request_);
    added_headers_ = std::move(decision.add);
    if (decision.reply) {
      refuse(std::move(*decision.reply));
      return false;
    }
  }
  if (const std::string_view expects = request_.header("expect"); !expects.empty()) {
    if (lower(expects) != "100-continue") {
      refuse(error(417, "only 100-continue can be expected"));
      return false;
    }
    if (has_chunks_ && !parsing_->parser.is_done()) {
      out_ += "HTTP/1.1 100 Continue\r\n\r\n";
      flush();
    }
  }
  expire_after(owner_->options.body_seconds);
  return true;
}

void Connection::handle() {
  request_.body = std::move(parsing_->parser.get().body());
  state_ = State::answering;
  deadline_ = Clock::time_point::max();
  last_activity_ = Clock::now();
  HttpRequest request = std::move(request_);
  request_ = {.method = {}, .path = request.path};  // for error()
  try {
    owner_->handler(std::move(request),
                    HttpResponse(std::make_shared<HttpResponse::State>(
                        shared_from_this(), exchange_, std::exchange(held_bytes_, 0))));
  } catch (const std::exception&) {
    // The response went without an answer, so the client gets status 500.
  }
}

// --- answering

HttpReply Connection::error(int status, const std::string& message) {
  if (parsing_ && !has_header_) copy_header();  // as far as it is known
  if (owner_->options.error) return owner_->options.error(request_, status, message);
  return {status, {{"content-type", "text/plain; charset=utf-8"}}, message + "\n"};
}

void Connection::refuse(HttpReply reply) {
  // The rest of the request is unread, so nothing after it can be understood.
  keeps_alive_ = false;
  state_ = State::answering;
  owner_->held_bytes -= std::exchange(held_bytes_, 0);
  parsing_.reset();
  deadline_ = Clock::time_point::max();
  put_reply(reply);
  end_answer();
}

void Connection::put_head(int status, const HttpHeaders& headers) {
  out_ += fmt::format("HTTP/1.1 {} {}\r\n", status, http_reason(status));
  const auto put = [&](const HttpHeaders& list) {
    for (const auto& [name, value] : list) out_ += fmt::format("{}: {}\r\n", name, value);
  };
  put(headers);
  put(added_headers_);
  if (owner_->is_stopping) keeps_alive_ = false;
  if (!keeps_alive_)
    out_ += "connection: close\r\n";
  else if (!has_chunks_)
    out_ += "connection: keep-alive\r\n";
}

void Connection::put_reply(const HttpReply& reply) {
  put_head(reply.status, reply.headers);
  if (reply.status != 204 && reply.status != 304)
    out_ += fmt::format("content-length: {}\r\n", reply.body.size());
  out_ += "\r\n";
  if (!is_head_) out_ += reply.body;
}

void Connection::send(uint64_t id, HttpReply reply) {
  if (!is_answering(id) || has_started_) return;
  has_started_ = true;
  put_reply(reply);
  end_answer();
}

void Connection::start_stream(uint64_t id, StreamHead head) {
  if (!is_answering(id) || has_started_) return;
  has_started_ = true;
  keep_alive_piece_ = std::move(head.keep_alive);
  // A client of HTTP/1.0 recognises the end of a stream by the end of the connection.
  if (!has_chunks_) keeps_alive_ = false;
  put_head(head.status, head.headers);
  out_ += has_chunks_ ? "transfer-encoding: chunked\r\n\r\n" : "\r\n";
  flush();
}

void Connection::start_when_quiet(uint64_t id, StreamHead head) {
  if (is_answering(id) && !has_started_) quiet_head_ = std::move(head);
}

void Connection::write(uint64_t id, const std::string& piece) {
  if (!is_answering(id) || !has_started_ || is_complete_ || is_head_ || piece.empty()) return;
  // Without this piece, which may be larger.
  if (out_.size() > owner_->options.max_unsent_bytes) return close();
  if (has_chunks_) fmt::format_to(std::back_inserter(out_), "{:x}\r\n", piece.size());
  out_ += piece;
  if (has_chunks_) out_ += "\r\n";
  // Most pieces go at once, which costs less than an operation with a callback.
  if (!is_writing_ && written_ == writing_.size()) {
    const size_t sent = transport_->write_at_once(out_);
    if (sent > 0) last_activity_ = Clock::now();
    if (sent == out_.size()) return out_.clear();
    out_.erase(0, sent);
  }
  flush();
}

void Connection::finish(uint64_t id) {
  if (!is_answering(id) || !has_started_ || is_complete_) return;
  if (has_chunks_ && !is_head_) out_ += "0\r\n\r\n";
  end_answer();
}

void Connection::fail(uint64_t id, HttpReply reply, const std::string& last_piece) {
  if (!is_answering(id)) return;
  if (!has_started_) return send(id, std::move(reply));
  write(id, last_piece);
  finish(id);
}

void Connection::abandon(uint64_t id) {
  if (!is_answering(id) || is_complete_) return;
  if (has_started_) return close();
  send(id, error(500, "the server gave no answer"));
}

void Connection::on_disconnect(uint64_t id, std::function<void()> callback) {
  if (is_answering(id))
    on_disconnect_ = std::move(callback);
  else if (state_ == State::closed && id == exchange_ && !is_complete_)
    callback();
}

void Connection::end_answer() {
  is_complete_ = true;
  on_disconnect_ = {};
  flush();
}

void Connection::flush() {
  if (is_writing_ || state_ == State::closed) return;
  if (written_ == writing_.size()) {
    writing_.clear();
    written_ = 0;
    std::swap(writing_, out_);
  }
  if (!writing_.empty()) {
    is_writing_ = true;
    last_activity_ = Clock::now();
    write_deadline_ = last_activity_ + seconds(owner_->options.write_seconds);
    transport_->write(std::string_view(writing_).substr(written_),
                      [self = shared_from_this()](error_code failed, size_t bytes) {
                        self->is_writing_ = false;
                        self->write_deadline_ = Clock::time_point::max();
                        if (failed) return self->close();
                        self->written_ += bytes;
                        self->flush();
                      });
    return;
  }
  if (state_ != State::answering || !is_complete_) return;
  if (!keeps_alive_ || owner_->is_stopping) {
    // Closing at once would reset the connection if the client is still sending, and the client
    // might then never see the answer.
    state_ = State::lingering;
    transport_->end_writing();
    expire_after(kLingerSeconds);
    return read();
  }
  next_request();
  parse();  // a request that came while this one was answered
  read();
}

}  // namespace prism::server
