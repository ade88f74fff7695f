// Drivers that abort, crash, exit, hang or conflict are left out, and the others are used.
#include "runtime/discovery/driver_trial.h"

#include <gtest/gtest.h>

#ifdef __linux__
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "runtime/discovery/registry.h"
#include "support/devices/fake_device.h"
#include "support/run_program.h"
#include "support/scoped_variable.h"

namespace prism {
namespace {

using test::FakeDevice;

// A backend whose driver does something on its first call.
class ScriptedBackend final : public Backend {
 public:
  ScriptedBackend(std::string name, std::function<void()> script)
      : name_(std::move(name)), script_(std::move(script)) {}
  std::string name() const override { return name_; }
  std::string label() const override { return name_; }
  Discovery discover() override {
    script_();
    Discovery found;
    found.devices = {std::make_shared<FakeDevice>(name_ + ":0", 1 << 20)};
    return found;
  }

 private:
  std::string name_;
  std::function<void()> script_;
};

void nothing() {}

// A driver that aborts beside another one of this kind.
std::string started_alone;
void start_alone(const std::string& name) {
  if (!started_alone.empty() && started_alone != name) std::abort();
  started_alone = name;
}

class DriverTrial : public testing::Test {
 protected:
  std::vector<std::unique_ptr<Backend>> backends() const {
    std::vector<std::unique_ptr<Backend>> all;
    for (const auto& [name, script] : scripts_)
      all.push_back(std::make_unique<ScriptedBackend>(name, script));
    return all;
  }
  // All are wanted.
  TrialFailures try_all(const std::string& surroundings,
                        std::chrono::milliseconds limit = std::chrono::seconds(20)) {
    const auto made = backends();
    std::vector<Backend*> tried;
    std::vector<std::string> names;
    for (const auto& each : made) {
      tried.push_back(each.get());
      names.push_back(each->name());
    }
    const auto known = known_trial(names, names.size(), surroundings);
    return known ? *known : try_backends(tried, surroundings, limit);
  }
  // A script that counts its runs in child processes.
  std::function<void()> counted() {
    return [this, parent = getpid()] {
      if (getpid() != parent) std::ofstream(folder_ / "trials", std::ios::app) << '.';
    };
  }
  size_t trials() const {
    return std::filesystem::exists(folder_ / "trials") ? test::read_file(folder_ / "trials").size()
                                                       : 0;
  }
  void expect_part(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "\"" << text << "\" has no " << part;
  }

  test::TemporaryFolder folder_;
  test::ScopedVariable cache_{"PRISM_CACHE_DIR", folder_ / "cache"};
  std::vector<std::pair<std::string, std::function<void()>>> scripts_;
};

TEST_F(DriverTrial, OneThatEndsTheProcessIsReportedAndTheOthersAreUsed) {
  scripts_ = {{"first", nothing},
              {"aborts", [] { std::abort(); }},
              {"crashes", [] { std::raise(SIGSEGV); }},
              {"exits", [] { std::exit(0); }},
              {"leaves", [] { _exit(0); }},
              {"throws", [] { throw std::runtime_error("no card"); }},
              {"last", nothing}};
  const auto reports = find_devices(backends(), "");
  ASSERT_EQ(reports.size(), 7u);
  EXPECT_TRUE(reports[0].available);
  expect_part(reports[1].reason, "its driver crashed when it was tried (Aborted)");
  expect_part(reports[2].reason, "its driver crashed when it was tried (Segmentation fault)");
  expect_part(reports[3].reason, "its driver ended the process when it was tried");
  expect_part(reports[4].reason, "its driver ended the process when it was tried");
  EXPECT_EQ(reports[5].reason, "no card");
  EXPECT_TRUE(reports[6].available);
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_FALSE(reports[i].available);
    EXPECT_FALSE(reports[i].next_step.empty());
  }
}

TEST_F(DriverTrial, OneThatHangsIsEndedAfterItsTime) {
  scripts_ = {{"hangs", [] { std::this_thread::sleep_for(std::chrono::hours(1)); }},
              {"other", nothing}};
  const auto reasons = try_all("here", std::chrono::milliseconds(200));
  EXPECT_EQ(reasons.at("hangs"), "its driver did not answer within 200 ms when it was tried");
  EXPECT_EQ(reasons.size(), 1u);
}

TEST_F(DriverTrial, OneThatCannotLiveBesideAnotherIsLeftOut) {
  scripts_ = {{"one", [] { start_alone("one"); }}, {"two", [] { start_alone("two"); }}};
  TrialFailures failures = try_all("here");
  EXPECT_EQ(failures.size(), 1u);
  expect_part(failures["two"], "Aborted");
  scripts_.erase(scripts_.begin());
  EXPECT_TRUE(try_all("here").empty()) << "alone it works";
}

TEST_F(DriverTrial, TheWantedOneComesFirst) {
  scripts_ = {{"one", [] { start_alone("one"); }}, {"two", [] { start_alone("two"); }}};
  EXPECT_FALSE(find_devices(backends(), "")[1].available);
  started_alone.clear();
  Registry registry(backends(), "");
  EXPECT_TRUE(registry.only({"two"})[1].available);
  expect_part(registry.all()[0].reason, "Aborted");
  started_alone.clear();
}

// With a driver running, no child could try another one.
TEST_F(DriverTrial, OneThatIsWantedLaterWasTriedBeforeTheFirstStart) {
  scripts_ = {{"works", nothing}, {"aborts", [] { std::abort(); }}, {"exits", [] { _exit(0); }}};
  Registry registry(backends(), "");
  const auto first = registry.only({"works"});
  EXPECT_TRUE(first[0].available);
  EXPECT_FALSE(first[1].available);
  const auto later = registry.only({"aborts"});
  EXPECT_FALSE(later[1].available);
  expect_part(later[1].reason, "its driver crashed when it was tried (Aborted)");
  EXPECT_FALSE(later[1].next_step.empty());
  expect_part(registry.all()[2].reason, "its driver ended the process when it was tried");
}

TEST_F(DriverTrial, WhatIsExcludedIsNotTried) {
  scripts_ = {{"works", nothing}, {"noted", counted()}};
  EXPECT_TRUE(Registry(backends(), "works").all()[0].available);
  EXPECT_EQ(trials(), 0u);
}

TEST_F(DriverTrial, ResultsAreRememberedForTheSameMachine) {
  scripts_ = {{"noted", counted()}, {"crashes", [] { std::abort(); }}};
  expect_part(try_all("here")["crashes"], "Aborted");
  const size_t first = trials();
  EXPECT_GT(first, 0u);
  expect_part(try_all("here")["crashes"], "within the last hour");
  EXPECT_EQ(trials(), first) << "tried again";
  try_all("with another card");
  EXPECT_GT(trials(), first);
}

// A driver that fails would otherwise delay the start of another one every hour.
TEST_F(DriverTrial, AFailureCountsLongerWhileItsBackendIsNotWanted) {
  scripts_ = {{"noted", counted()}, {"crashes", [] { std::abort(); }}};
  const auto is_usable = [&](const std::string& name) {
    Registry registry(backends(), "");
    return registry.only({name})[name == "noted" ? 0 : 1].available;
  };
  EXPECT_TRUE(is_usable("noted"));
  const size_t first = trials();
  std::filesystem::remove_all(folder_ / "cache/drivers");  // the hour is over
  EXPECT_TRUE(is_usable("noted"));
  EXPECT_EQ(trials(), first) << "tried again";
  EXPECT_FALSE(is_usable("crashes"));
  EXPECT_GT(trials(), first) << "not tried again";
}

TEST_F(DriverTrial, NothingIsTriedForBackendsWithoutDrivers) {
  class PlainBackend final : public Backend {
   public:
    std::string name() const override { return "plain"; }
    std::string label() const override { return "plain"; }
    Discovery discover() override { std::abort(); }
    bool starts_driver() const override { return false; }
  } plain;
  Backend* const all[] = {&plain};
  EXPECT_TRUE(try_backends(all, "here", std::chrono::seconds(1)).empty());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache"));
}

TEST_F(DriverTrial, TheTimeLimitIsAnEnvironmentVariable) {
  EXPECT_EQ(driver_time_limit(), std::chrono::seconds(60));
  {
    const test::ScopedVariable set("PRISM_DRIVER_SECONDS", "5");
    EXPECT_EQ(driver_time_limit(), std::chrono::seconds(5));
  }
  for (const char* wrong : {"0", "x", "5s", "-1", "99999"}) {
    const test::ScopedVariable set("PRISM_DRIVER_SECONDS", wrong);
    EXPECT_THROW(driver_time_limit(), Error) << wrong;
  }
}

}  // namespace
}  // namespace prism
#endif
