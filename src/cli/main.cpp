// The program `prism`.
#include <new>

#include "cli/app.h"
#include "cli/fatal_errors.h"

int main(int count, char** words) {
  prism::cli::report_fatal_errors();
  try {
    return prism::cli::run(count, words);
  } catch (const std::bad_alloc&) {
    return prism::cli::report_out_of_memory();
  }
}
