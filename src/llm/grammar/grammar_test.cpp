// Tests grammars: accepted texts, token masks, errors with their location, hostile grammars.
#include "prism/llm/grammar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <random>
#include <set>

#include "llm/grammar/json_schema.h"
#include "llm/grammar/vocabulary_trie.h"
#include "prism/error.h"
#include "support/seed.h"

namespace prism::llm {
namespace {

std::string error_of(std::string_view text) {
  try {
    Grammar::parse(text);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
}

void expect(std::string_view grammar, const std::vector<std::string>& right,
            const std::vector<std::string>& wrong) {
  const Grammar parsed = Grammar::parse(grammar);
  for (const std::string& text : right)
    EXPECT_TRUE(parsed.matches(text)) << grammar << "\n" << text;
  for (const std::string& text : wrong)
    EXPECT_FALSE(parsed.matches(text)) << grammar << "\n" << text;
}

TEST(Grammar, LiteralsAlternativesAndGroups) {
  expect(R"(root ::= "yes" | ("no" | "never") " more"?)", {"yes", "no", "never", "no more"},
         {"", "ye", "yess", "nomore", "yes more"});
  expect("root ::= a b\na ::= \"x\"\nb ::= \"y\" | \"\"", {"xy", "x"}, {"y", "", "xyy"});
}

TEST(Grammar, Repetitions) {
  expect(R"(root ::= "a"*)", {"", "a", "aaaa"}, {"b", "ab"});
  expect(R"(root ::= "ab"+)", {"ab", "abab"}, {"", "abb", "a"});
  expect(R"(root ::= [0-9]{2,4})", {"12", "123", "1234"}, {"1", "12345"});
  expect(R"(root ::= [0-9]{3})", {"123"}, {"12", "1234"});
  expect(R"(root ::= [0-9]{2,})", {"12", "123456"}, {"1"});
  expect(R"(root ::= "a"{,2})", {"", "a", "aa"}, {"aaa"});
  expect(R"(root ::= "a"{0} "b")", {"b"}, {"ab"});
  expect(R"(root ::= ("a"?)* "b")", {"b", "aaab"}, {"a"});
  expect(R"(root ::= ("a"?){2,3} "b")", {"b", "ab", "aab", "aaab"}, {"aaaab"});
  // Nothing is unrolled: a billion repetitions cost as much as two.
  expect(R"(root ::= [a-z]{0,1000000000})", {"", "abcdefg"}, {"A"});
}

TEST(Grammar, ClassesEscapesAndUnicode) {
  expect(R"(root ::= [a-cx-z_]+)", {"abcxyz_"}, {"d", ""});
  expect(R"(root ::= [^a-z]+)", {"ABC", "é", "日本"}, {"a", "Aa"});
  expect(R"(root ::= [\]\-\\^]+)", {"]-\\^"}, {"["});
  expect(R"(root ::= "\n\t\"\\\x41\u00e9\U0001F600")", {"\n\t\"\\A\xC3\xA9\xF0\x9F\x98\x80"}, {""});
  expect(R"(root ::= . .)", {"ab", "日x"}, {"a", "abc"});
  expect("root ::= \"日本\" [α-ω]+", {"日本αβγ"}, {"日本a"});
  expect(R"(root ::= [a-])", {"a", "-"}, {"b"});
}

TEST(Grammar, LinesAndComments) {
  expect("# a comment\nroot ::= # here too\n  \"a\"\n  | \"b\" # and here\n\n  | (\n\"c\"\n)\n",
         {"a", "b", "c"}, {"d"});
  expect("root ::= item\r\nitem ::= \"x\"\r\n", {"x"}, {"y"});
}

TEST(Grammar, NestingHasNoLimit) {
  const Grammar nested = Grammar::parse(R"gbnf(root ::= "(" root ")" | "x")gbnf");
  const std::string open(5000, '('), close(5000, ')');
  EXPECT_TRUE(nested.matches(open + "x" + close));
  EXPECT_FALSE(nested.matches(open + "x" + close.substr(1)));
}

TEST(Grammar, PartsAreRulesOfOtherGrammars) {
  const Grammar number = Grammar::parse("root ::= digit+ (\",\" digit{2})?\ndigit ::= [0-9]");
  const Grammar word = Grammar::parse("word ::= [a-z]+ word?", "word");
  const Grammar both = Grammar::parse("root ::= digit n w | w{2}\ndigit ::= \"-\"", "root",
                                      {{"n", number}, {"w", word}});
  EXPECT_TRUE(both.matches("-12,34ab"));
  EXPECT_TRUE(both.matches("abc"));
  EXPECT_FALSE(both.matches("112,34ab"));
  EXPECT_FALSE(both.matches("-12,3ab"));
  EXPECT_THROW(Grammar::parse("root ::= n\nn ::= \"x\"", "root", {{"n", number}}), Error);
}

TEST(Grammar, ErrorsNameThePlace) {
  EXPECT_NE(error_of("root ::= \"a\n").find("line 1 column 10"), std::string::npos);
  EXPECT_NE(error_of("root ::= a\n\na = \"b\"").find("line 3 column 3"), std::string::npos);
  EXPECT_NE(error_of("root ::= é").find("line 1 column 10"), std::string::npos);
  EXPECT_NE(error_of("root ::= \"x\" thing").find("\"thing\" is used but not defined"),
            std::string::npos);
  EXPECT_NE(error_of("root ::= \"x\" thing").find("line 1 column 14"), std::string::npos);
  EXPECT_NE(error_of("other ::= \"x\"").find("no rule \"root\""), std::string::npos);
  EXPECT_NE(error_of("root ::= \"a\"\nroot ::= \"b\"").find("defined twice"), std::string::npos);
  for (const char* wrong :
       {"root ::= [a", "root ::= *", "root ::= \"a\"{2", "root ::= \"a\"{3,2}", "root ::= (\"a\"",
        "root ::= \"\\q\"", "root ::= \"\\x4\"", "root ::= [z-a]", "root ::= \"\\UFFFFFFFF\"",
        "root ::= \"a\"{99999999999}", "root ::= \"a\")", "root", "::=", "root ::= \"\xff\"",
        "root ::= \"a\"**"})
    EXPECT_NE(error_of(wrong), "") << wrong;
}

TEST(Grammar, RulesThatBeginWithThemselvesAreFound) {
  EXPECT_NE(error_of("root ::= root \"a\" | \"b\"").find("root -> root"), std::string::npos);
  EXPECT_NE(error_of("root ::= a\na ::= b \"x\"\nb ::= \"y\"? a").find("a -> b"),
            std::string::npos);
  EXPECT_NE(error_of("root ::= e* root\ne ::= \"x\"").find("begins with itself"),
            std::string::npos);
  EXPECT_NE(error_of("root ::= e root\ne ::= \"x\" | \"\"").find("begins with itself"),
            std::string::npos);
  EXPECT_EQ(error_of("root ::= \"a\" root | \"\""), "");
}

// --- random grammars against a matcher without stacks

using Places = std::set<size_t>;

struct RandomGrammar {
  std::string gbnf;
  // The positions after the grammar, from any of these positions. (Backtracking regular-expression
  // matchers take minutes for some of these.)
  std::function<Places(const std::string&, const Places&)> behind;
};

RandomGrammar one_of(std::string gbnf, std::function<bool(char)> takes) {
  return {std::move(gbnf), [takes](const std::string& text, const Places& from) {
            Places places;
            for (const size_t at : from)
              if (at < text.size() && takes(text[at])) places.insert(at + 1);
            return places;
          }};
}

RandomGrammar repeated(const RandomGrammar& a, const std::string& op, size_t least, size_t most) {
  return {"(" + a.gbnf + ")" + op, [=](const std::string& text, Places now) {
            Places places;
            // More repetitions than the text is long add nothing.
            for (size_t count = 0; count <= std::min(most, least + text.size()); ++count) {
              if (count >= least) places.insert(now.begin(), now.end());
              now = a.behind(text, now);
            }
            return places;
          }};
}

RandomGrammar random_grammar(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 6 : 2)) {
    case 0: {
      const char c = static_cast<char>('a' + random() % 3);
      return one_of(std::string("\"") + c + "\"", [c](char at) { return at == c; });
    }
    case 1:
      return random() % 2 ? one_of("[ab]", [](char at) { return at != 'c'; })
                          : one_of("[^a]", [](char at) { return at != 'a'; });
    case 2: {
      const auto a = random_grammar(random, depth - 1), b = random_grammar(random, depth - 1);
      return {"(" + a.gbnf + " | " + b.gbnf + ")",
              [=](const std::string& text, const Places& from) {
                Places places = a.behind(text, from);
                places.merge(b.behind(text, from));
                return places;
              }};
    }
    case 3: {
      const auto a = random_grammar(random, depth - 1), b = random_grammar(random, depth - 1);
      return {"(" + a.gbnf + " " + b.gbnf + ")", [=](const std::string& text, const Places& from) {
                return b.behind(text, a.behind(text, from));
              }};
    }
    default: {
      struct Operator {
        const char* text;
        size_t least, most;
      };
      constexpr size_t kAny = SIZE_MAX;
      const Operator operators[] = {{"*", 0, kAny}, {"+", 1, kAny},  {"?", 0, 1},
                                    {"{2}", 2, 2},  {"{1,2}", 1, 2}, {"{2,}", 2, kAny},
                                    {"{0,3}", 0, 3}};
      const Operator& op = operators[random() % std::size(operators)];
      return repeated(random_grammar(random, depth - 1), op.text, op.least, op.most);
    }
  }
}

TEST(Grammar, AgreesWithSetsOfPlaces) {
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int accepted = 0;
  for (int round = 0; round < 150; ++round) {
    const RandomGrammar made = random_grammar(random, 3);
    const Grammar grammar = Grammar::parse("root ::= " + made.gbnf);
    for (int i = 0; i < 60; ++i) {
      std::string text(random() % 7, 'a');
      for (char& c : text) c = static_cast<char>('a' + random() % 3);
      const bool expected = made.behind(text, {0}).contains(text.size());
      accepted += expected;
      ASSERT_EQ(grammar.matches(text), expected) << made.gbnf << " on " << text;
    }
  }
  EXPECT_GT(accepted, 500);  // the test covered something
}

// --- masks

bool allowed(std::span<const uint64_t> mask, size_t token) {
  return (mask[token / 64] >> (token % 64) & 1) != 0;
}

TEST(GrammarMatcher, MasksAreWhatAcceptingOneByOneGives) {
  const uint32_t seed = test_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  // Tokens with the bytes that matter, including partial characters; some are duplicates, some
  // empty.
  const std::vector<std::string> bits = {"\"",   "{",        "}",    ":",  ",",    " ",
                                         "a",    "1",        "\\",   "n",  "é",    "\xC3",
                                         "\xA9", "\xE6\x97", "\xA5", "\n", "true", "["};
  std::vector<std::string> texts = {"", "<end>"};
  while (texts.size() < 700) {
    std::string text;
    for (size_t n = 1 + random() % 3; n > 0; --n) text += bits[random() % bits.size()];
    texts.push_back(text);
  }
  texts.push_back(texts[5]);
  const auto trie = std::make_shared<const VocabularyTrie>(texts);
  const Grammar grammar = Grammar::parse(json_grammar());
  const auto fresh = [&](const std::vector<int32_t>& tokens) {
    GrammarMatcher matcher(grammar, trie, {1});
    for (const int32_t token : tokens) EXPECT_TRUE(matcher.accept(token));
    return matcher;
  };
  int steps = 0;
  for (int text = 0; text < 12; ++text) {
    GrammarMatcher matcher(grammar, trie, {1});
    std::vector<int32_t> tokens;
    for (int step = 0; step < 12; ++step, ++steps) {
      const auto span = matcher.allowed();
      const std::vector<uint64_t> mask(span.begin(), span.end());
      std::vector<int32_t> possible;
      for (size_t token = 0; token < texts.size(); ++token) {
        GrammarMatcher trial = fresh(tokens);
        const bool expected = trial.accept(static_cast<int32_t>(token));
        ASSERT_EQ(allowed(mask, token), expected) << "token \"" << texts[token] << "\"";
        if (expected && token != 1) possible.push_back(static_cast<int32_t>(token));
      }
      EXPECT_EQ(matcher.may_end(), allowed(mask, 1));
      if (possible.empty()) break;
      tokens.push_back(possible[random() % possible.size()]);
      ASSERT_TRUE(matcher.accept(tokens.back()));
    }
  }
  EXPECT_GT(steps, 40);
}

TEST(GrammarMatcher, KnowsWhereATextMayAndMustEnd) {
  const auto trie = std::make_shared<const VocabularyTrie>(
      std::vector<std::string>{"<end>", "y", "e", "s", "yes", "!"});
  GrammarMatcher matcher(Grammar::parse(R"(root ::= "yes" "!"?)"), trie, {0});
  EXPECT_FALSE(matcher.may_end());
  EXPECT_FALSE(matcher.accept(0));
  EXPECT_FALSE(matcher.accept(2));
  EXPECT_TRUE(matcher.accept(1));
  EXPECT_FALSE(matcher.accept(4));
  EXPECT_TRUE(matcher.accept(2));
  EXPECT_TRUE(matcher.accept(3));
  EXPECT_TRUE(matcher.may_end());
  EXPECT_FALSE(matcher.must_end());
  EXPECT_TRUE(matcher.accept(0));
  EXPECT_TRUE(matcher.accept(5));
  EXPECT_TRUE(matcher.must_end());
  EXPECT_TRUE(allowed(matcher.allowed(), 0));
  for (size_t token = 1; token < 6; ++token) EXPECT_FALSE(allowed(matcher.allowed(), token));
  matcher.reset();
  EXPECT_TRUE(matcher.accept(4));
}

TEST(GrammarMatcher, LargeVocabulariesAreQuick) {
  std::mt19937 random(3);
  std::vector<std::string> texts;
  const std::string letters = "etaoinshrdlucmfwypvbgkjqxz  \"{}:,[]0123456789\n";
  while (texts.size() < 150000) {
    std::string text;
    for (size_t n = 1 + random() % 10; n > 0; --n) text += letters[random() % letters.size()];
    texts.push_back(text);
  }
  const auto trie = std::make_shared<const VocabularyTrie>(texts);
  GrammarMatcher matcher(Grammar::parse(json_grammar()), trie, {});
  double worst = 0;
  for (const char* next : {"{", "\"", "name", "\"", ":", " \"", "a long text", "\"", ", \"", "b"}) {
    const std::clock_t start = std::clock();  // CPU time: the machine may be busy
    matcher.allowed();
    worst = std::max(worst, double(std::clock() - start) * 1e3 / CLOCKS_PER_SEC);
    ASSERT_TRUE(matcher.accept_text(next));
  }
  RecordProperty("worst_ms", std::to_string(worst));
  // About 3 ms when optimised (random texts share little: real vocabularies have half the nodes),
  // and almost nothing when a state recurs.
  EXPECT_LT(worst, 50);
}

TEST(GrammarMatcher, HostileGrammarsEndWithAnError) {
  const auto trie = std::make_shared<const VocabularyTrie>(
      std::vector<std::string>{"a", "aa", "aaa", std::string(200, 'a')});
  // Each level offers every alternative of the next: 30,000 parses of one letter.
  std::string wide = "root ::= ";
  for (int i = 0; i < 30000; ++i) wide += (i ? " | \"a\"" : "\"a\"");
  wide += " \"b\"";
  const std::string nested = "root ::= (((\"a\"?){0,900000}){0,900000}){0,900000}";
  for (const std::string& text : {wide, nested}) {
    const auto start = std::chrono::steady_clock::now();
    try {
      GrammarMatcher matcher(Grammar::parse(text), trie, {});
      matcher.allowed();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kNotSupported);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  }
}

}  // namespace
}  // namespace prism::llm
