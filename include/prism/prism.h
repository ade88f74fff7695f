// All of Prism.
#pragma once

#include "prism/compile.h"
#include "prism/device.h"
#include "prism/error.h"
#include "prism/file_search.h"
#include "prism/grad.h"
#include "prism/io.h"
#include "prism/kernel.h"
#include "prism/llm.h"
#include "prism/nn.h"
#include "prism/ops.h"
#include "prism/search.h"
#include "prism/tensor.h"
#include "prism/warning.h"
