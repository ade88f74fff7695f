// The commands of the program, one file each. Results go to standard output, everything else goes
// to standard error.
#pragma once

#include "cli/command_line.h"

namespace prism::cli {

// Each function adds its command to the program, or to the command that it belongs to.
void add_devices_command(const Command& program);
void add_kernel_command(const Command& program);  // list, show, run
void add_kernel_show_command(const Command& kernel);
void add_kernel_run_command(const Command& kernel);
void add_check_command(const Command& program);
void add_calibrate_command(const Command& program);
void add_bench_command(const Command& program);  // MODEL, ops
void add_bench_model_command(const Command& bench);
void add_setup_command(const Command& program);
void add_report_command(const Command& program);
void add_fit_command(const Command& program);
void add_model_command(const Command& program);
void add_model_info_command(const Command& model);
void add_model_verify_command(const Command& model);
void add_model_convert_command(const Command& model);
void add_model_quantize_command(const Command& model);
void add_model_imatrix_command(const Command& model);
void add_model_merge_command(const Command& model);
void add_model_store_commands(const Command& model);  // fetch, list, remove
void add_tokenize_command(const Command& program);
void add_run_command(const Command& program);
void add_chat_command(const Command& program);
void add_serve_command(const Command& program);
void add_score_command(const Command& program);
void add_perplexity_command(const Command& program);
void add_train_command(const Command& program);
void add_embed_command(const Command& program);
void add_rerank_command(const Command& program);
void add_vectors_command(const Command& program);  // build, search, add, remove, info ...
void add_index_command(const Command& program);
void add_search_command(const Command& program);
void add_completion_command(const Command& program);

}  // namespace prism::cli
