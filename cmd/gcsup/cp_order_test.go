package main

import (
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"gcsup/upload"
)

// TestOutcomes checks the order in which outcomes are passed on. Each letter is a file.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct{ jobs, ended, want string }{
		{"", "", ""},
		{"abcd", "abcd", "abcd"},
		{"abcd", "dcba", "abcd"},
		{"aab", "baa", "aab"},  // a file that is named twice
		{"abcd", "bad", "abd"}, // c has no outcome: the run was interrupted
		{"abc", "b", "b"},
	} {
		var order jobOrder
		jobs := func(yield func(upload.Job) bool) {
			for _, name := range strings.Split(c.jobs, "") {
				if !yield(upload.Job{Path: name, Spec: upload.Spec{Bucket: "b", Object: name}}) {
					return
				}
			}
		}
		outcomes := func(yield func(*upload.Result, error) bool) {
			for range order.jobs(jobs) {
			}
			for _, name := range strings.Split(c.ended, "") {
				if !yield(&upload.Result{Path: name, Spec: upload.Spec{Bucket: "b", Object: name}}, errors.New(name)) {
					return
				}
			}
		}
		var got strings.Builder
		for res, err := range order.outcomes(outcomes) {
			if res.Path != err.Error() {
				t.Errorf("%s has the error of %v", res.Path, err)
			}
			got.WriteString(res.Path)
		}
		if got.String() != c.want {
			t.Errorf("jobs %q ended as %q: got %q, want %q", c.jobs, c.ended, got.String(), c.want)
		}
	}
}

// TestOutcomesOnTheWay checks that an outcome is passed on as soon as those before it are.
func TestOutcomesOnTheWay(t *testing.T) {
	var order jobOrder
	jobs := slices.Values([]upload.Job{{Path: "a"}, {Path: "b"}})
	var seen []string
	outcomes := func(yield func(*upload.Result, error) bool) {
		next, stop := iter.Pull(order.jobs(jobs))
		defer stop()
		for job, ok := next(); ok && yield(&upload.Result{Path: job.Path}, nil); job, ok = next() {
			if !slices.Contains(seen, job.Path) {
				t.Errorf("%s waits, although nothing is before it", job.Path)
			}
		}
	}
	for res := range order.outcomes(outcomes) {
		seen = append(seen, res.Path)
	}
}
