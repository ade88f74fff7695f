// `prism search`: finds passages of files, for people and agents.
#include <iostream>

#include <fmt/format.h>

#include "cli/app.h"
#include "cli/commands.h"
#include "cli/mcp_server.h"
#include "cli/search_text.h"
#include "cli/terminal.h"
#include "prism/error.h"
#include "prism/file_search.h"
#include "prism/warning.h"
#include "search/files/default_embedder.h"
#include "search/files/file_walk.h"
#include "search/files/search_json.h"

namespace prism::cli {
namespace {

using search::FileIndex;
using search::FileSearchResult;
using search::Ranking;

struct Options {
  std::string question, path, index, only, rank = "hybrid";
  uint64_t count = 10, lines = 6;
  bool json = false, mcp = false;
};

FileIndex open_index(const Options& o) {
  if (!o.index.empty()) return FileIndex::open(o.index);
  const std::string path = o.path.empty() ? "." : o.path;
  const std::optional<std::string> index = search::nearest_file_index(path);
  if (index) return FileIndex::open(*index);
  throw Error(ErrorCode::kNotFound,
              fmt::format("search: {} is not indexed yet; run this once: prism index {}",
                          search::whole_path(path), path == "." ? "" : path));
}

int search_files(const Options& o) {
  if (o.question.empty())
    throw Error(ErrorCode::kInvalidArgument,
                "search: there is no question; try prism search 'where is the cache invalidated?'");
  search::FileSearchOptions options;
  options.count = o.count;
  options.ranking = search::ranking_named(o.rank);
  options.only = search::kind_named(o.only);
  const FileIndex index = open_index(o);
  const search::FileIndexInfo info = index.info();
  if (!o.path.empty() || o.index.empty()) options.under = o.path.empty() ? "." : o.path;
  std::shared_ptr<const search::PassageEmbedder> embedder;
  if (options.ranking != Ranking::words && info.vectors > 0)
    embedder = search::default_embedder_if_possible();
  options.embedder = embedder.get();
  const FileSearchResult result = index.search(o.question, options);
  if (o.json) {
    Json json = search::result_json(result);
    json["question"] = o.question;
    json["index"] = info.path;
    std::cout << json.dump() << "\n";
    return result.passages.empty() ? kFailed : kRight;
  }
  if (result.ranking != options.ranking && info.vectors == 0)
    warn("the index has words only; run prism index to add vectors");
  bool is_first = true;
  for (const search::FoundPassage& each : result.passages) {
    std::cout << (is_first || o.lines == 0 ? "" : "\n") << passage_text(each, o.lines);
    is_first = false;
  }
  if (result.passages.empty())
    std::cerr << fmt::format("nothing found in {} passages of {} files\n", info.passages,
                             info.files);
  return result.passages.empty() ? kFailed : kRight;
}

McpTool search_tool(const Options& o, const std::function<FileIndex()>& open,
                    const std::function<const search::PassageEmbedder*()>& embedder) {
  McpTool tool;
  tool.name = "search";
  tool.title = "Search files";
  tool.description =
      "Finds passages in the user's indexed files by meaning and by words. Ask a question or give "
      "words and identifiers. Returns path:line and the text of each passage, best first.";
  tool.arguments = Json::parse(R"({
    "type": "object",
    "properties": {
      "query": {"type": "string", "description": "a question, or words"},
      "path": {"type": "string", "description": "only files in this folder"},
      "n": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
      "only": {"type": "string", "enum": ["code", "text"]},
      "rank": {"type": "string", "enum": ["hybrid", "vectors", "words"], "default": "hybrid"}
    },
    "required": ["query"],
    "additionalProperties": false
  })");
  tool.call = [=](const JsonView& arguments) {
    search::FileSearchOptions options;
    options.count = static_cast<uint64_t>(arguments["n"].integer_or(10, 1, 100));
    options.ranking = search::ranking_named(arguments["rank"].string_or("hybrid"));
    options.only = search::kind_named(arguments["only"].string_or(""));
    options.under = arguments["path"].string_or(o.path);
    const FileIndex index = open();
    if (options.ranking != Ranking::words && index.info().vectors > 0)
      options.embedder = embedder();
    const FileSearchResult result = index.search(arguments["query"].string(), options);
    std::string text;
    for (const search::FoundPassage& each : result.passages)
      text +=
          fmt::format("{}:{}-{}\n{}\n\n", each.path, each.first_line, each.last_line, each.text);
    if (text.empty()) text = "nothing found";
    return McpTool::Result{text, search::result_json(result)};
  };
  return tool;
}

McpTool status_tool(const std::function<FileIndex()>& open) {
  McpTool tool;
  tool.name = "index_status";
  tool.title = "Status of the index";
  tool.description =
      "Says which folders are indexed, how many files and passages there are, and when the index "
      "was updated (seconds since 1970).";
  tool.arguments = Json::parse(R"({"type": "object", "properties": {},
                                   "additionalProperties": false})");
  tool.call = [open](const JsonView&) {
    const Json json = search::info_json(open().info());
    return McpTool::Result{json.dump(), json};
  };
  return tool;
}

int serve_mcp(Options o) {
  if (o.path.empty()) std::swap(o.path, o.question);  // prism search --mcp FOLDER
  std::shared_ptr<const search::PassageEmbedder> loaded;
  bool is_loaded = false;
  const auto embedder = [&] {
    if (!is_loaded) loaded = search::default_embedder_if_possible();
    is_loaded = true;
    return loaded.get();
  };
  const auto open = [&] {
    return open_index(o);
  };  // each time: it may be made or changed meanwhile
  const McpServer server{"prism",
                         version(),
                         "Use the tool search to find code and text in the user's files.",
                         {search_tool(o, open, embedder), status_tool(open)}};
  server.run(std::cin, std::cout);
  return kRight;
}

}  // namespace

void add_search_command(const Command& program) {
  const Command command = program.subcommand("search", "find passages in files by their meaning");
  auto options = std::make_shared<Options>();
  command.option("question", options->question, "a question, or words");
  command.option("path", options->path,
                 "a folder or file: only what is in it; without it, the current folder");
  command.option("-n,--count", options->count, "passages").positive().shows_default();
  command.option("--lines", options->lines, "lines of each passage").shows_default();
  command.option("--only", options->only, "code or text");
  command
      .option("--rank", options->rank,
              "hybrid (words and vectors), vectors (by meaning) or words (BM25)")
      .shows_default();
  command.option("--index", options->index, "the index file that prism index --index made");
  command.flag("--json", options->json, "print JSON: results[] with path, line, text and score");
  command.footer(
      "Make an index first: prism index. Exit status: 0 something was found, 1 "
      "nothing.\nExamples:\n  prism search 'where is the cache invalidated?'\n  prism search 'a "
      "cake without eggs' ~/notes -n 3\n  prism search parse_header src --only code --rank words");
  command.flag("--mcp", options->mcp,
               "serve agents: the Model Context Protocol over standard input and output");
  command.run([options] { return options->mcp ? serve_mcp(*options) : search_files(*options); });
}

}  // namespace prism::cli
