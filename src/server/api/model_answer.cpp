// Runs the work of an answer in the engine and sends its reply.
#include "server/api/model_answer.h"

#include <utility>

namespace prism::server {

void answer_with(const ApiCall& call, std::shared_ptr<ServedModel> model, ModelAnswer work,
                 ErrorWriter write_error) {
  const HttpResponse response = call.response;
  Engine& engine = call.context.engine;
  // Sent when the request has left the queue, so that the client's next one finds room there.
  const auto reply = std::make_shared<std::optional<HttpReply>>();
  const uint64_t id = engine.run_with(
      std::move(model),
      [reply, work = std::move(work)](EngineModel& on) {
        *reply = work(on);
        return reply->has_value();
      },
      [reply, response, write_error](const std::exception_ptr& failure) {
        response.send(failure ? write_error(ApiError::from(failure)) : std::move(**reply));
      });
  response.on_disconnect([&engine, id] { engine.cancel(id); });
}

}  // namespace prism::server
