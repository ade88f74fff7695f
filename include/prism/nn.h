// Training: modules, losses, optimisers, compiled steps. docs/training.md is the tutorial.
#pragma once

#include "prism/nn/checkpoint.h"
#include "prism/nn/data.h"
#include "prism/nn/init.h"
#include "prism/nn/layers.h"
#include "prism/nn/log.h"
#include "prism/nn/losses.h"
#include "prism/nn/module.h"
#include "prism/nn/optimizer.h"
#include "prism/nn/scalar.h"
#include "prism/nn/schedule.h"
#include "prism/nn/train_step.h"
