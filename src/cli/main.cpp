// The program `prism`.
#include "cli/app.h"

int main(int count, char** words) { return prism::cli::run(count, words); }
