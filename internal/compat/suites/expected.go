package suites

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// expectation is a pattern of names of tests that fail. A * in it matches any characters.
type expectation struct {
	pattern string
	re      *regexp.Regexp
}

// parseExpected reads a list of expected failures. A paragraph begins with the reason, in lines
// with #, and has a pattern in each other line. A pattern without a reason is an error.
func parseExpected(text string) ([]expectation, error) {
	var list []expectation
	reason := false
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			reason = false
		case strings.HasPrefix(line, "#"):
			reason = true
		case !reason:
			return nil, fmt.Errorf("line %d: %s has no reason: write it above, in a line with #", i+1, line)
		default:
			parts := strings.Split(line, "*")
			for i := range parts {
				parts[i] = regexp.QuoteMeta(parts[i])
			}
			re, err := regexp.Compile("^" + strings.Join(parts, ".*") + "$")
			if err != nil {
				return nil, err
			}
			list = append(list, expectation{line, re})
		}
	}
	return list, nil
}

// compare returns a line for each test that fails and is not expected to, each that passes and is
// expected to fail, and each pattern that no test matches.
func compare(results map[string]testResult, expected []expectation) []string {
	var differences []string
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(results)) {
		matched := false
		for _, e := range expected {
			if e.re.MatchString(name) {
				matched, used[e.pattern] = true, true
			}
		}
		switch {
		case results[name] == failed && !matched:
			differences = append(differences, "fails:            "+name)
		case results[name] != failed && matched:
			differences = append(differences, "no longer fails:  "+name)
		}
	}
	for _, e := range expected {
		if !used[e.pattern] {
			differences = append(differences, "matches no test:  "+e.pattern)
		}
	}
	return differences
}
