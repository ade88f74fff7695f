// The commands of the program, one file each. Results go to standard output, everything else to
// standard error.
#pragma once

namespace CLI {
class App;
}

namespace prism::cli {

inline constexpr int kRight = 0, kFailed = 1, kWrongCall = 2;

// Each adds its command; the command leaves its exit status in *status.
void add_devices_command(CLI::App& app, int* status);
void add_kernel_command(CLI::App& app, int* status);  // list, show, run
void add_kernel_show_command(CLI::App& kernel, int* status);
void add_kernel_run_command(CLI::App& kernel, int* status);
void add_check_command(CLI::App& app, int* status);
void add_calibrate_command(CLI::App& app, int* status);
void add_bench_command(CLI::App& app, int* status);  // MODEL, ops
void add_bench_model_command(CLI::App& bench, int* status);
void add_setup_command(CLI::App& app, int* status);
void add_report_command(CLI::App& app, int* status);
void add_fit_command(CLI::App& app, int* status);
void add_model_command(CLI::App& app, int* status);
void add_model_info_command(CLI::App& model, int* status);
void add_model_verify_command(CLI::App& model, int* status);
void add_model_quantize_command(CLI::App& model, int* status);
void add_model_store_commands(CLI::App& model, int* status);  // fetch, list, remove
void add_tokenize_command(CLI::App& app, int* status);
void add_run_command(CLI::App& app, int* status);
void add_chat_command(CLI::App& app, int* status);
void add_score_command(CLI::App& app, int* status);
void add_perplexity_command(CLI::App& app, int* status);
void add_embed_command(CLI::App& app, int* status);

}  // namespace prism::cli
