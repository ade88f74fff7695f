// Every op over tensors.
#pragma once

#include "prism/ops/attention.h"
#include "prism/ops/bounded.h"
#include "prism/ops/conv.h"
#include "prism/ops/create.h"
#include "prism/ops/elementwise.h"
#include "prism/ops/gates.h"
#include "prism/ops/index.h"
#include "prism/ops/join.h"
#include "prism/ops/matmul.h"
#include "prism/ops/norm.h"
#include "prism/ops/quantise.h"
#include "prism/ops/reduce.h"
#include "prism/ops/rope.h"
#include "prism/ops/scan.h"
#include "prism/ops/softmax.h"
#include "prism/ops/sort.h"
