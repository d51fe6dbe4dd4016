package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"gcsup/backoff"
	"gcsup/fakegcs/faults"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/readable"
	"gcsup/internal/cli/result"
	"gcsup/internal/require"
	"gcsup/session"
	"gcsup/upload"
)

// leaves returns the commands that do something themselves.
func leaves(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	if len(cmd.Commands()) == 0 || !cmdline.IsGroup(cmd) {
		all = append(all, cmd)
	}
	for _, c := range cmd.Commands() {
		all = append(all, leaves(c)...)
	}
	return all
}

func anyHas(root *cobra.Command, flag string) bool {
	return slices.ContainsFunc(leaves(root), func(c *cobra.Command) bool { return c.LocalFlags().Lookup(flag) != nil })
}

// TestDocumentedJSON checks the tables of the topic json against the lines that the program prints.
func TestDocumentedJSON(t *testing.T) {
	part, _, _ := strings.Cut(topicText("json"), "### Lines of other commands")
	results, events, ok := strings.Cut(part, "Events come before the result")
	if !ok {
		t.Fatal("the topic json has no section on events")
	}
	first := regexp.MustCompile("(?m)^\\| ((?:`[a-z0-9_]+`(?:, )?)+) \\|")
	name := regexp.MustCompile("`([a-z0-9_]+)`")
	column := func(text string) (names []string) {
		for _, row := range first.FindAllStringSubmatch(text, -1) {
			for _, m := range name.FindAllStringSubmatch(row[1], -1) {
				names = append(names, m[1])
			}
		}
		slices.Sort(names)
		return names
	}
	var fields []string
	for f := range reflect.TypeFor[result.Line]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, name)
	}
	slices.Sort(fields)
	if have := column(results); !slices.Equal(have, fields) {
		t.Errorf("the topic json has the fields\n%v of a result, the program\n%v", have, fields)
	}
	events, summary, ok := strings.Cut(events, "The last line is a summary")
	if !ok {
		t.Fatal("the topic json has no section on the summary")
	}
	var totals []string
	for f := range reflect.TypeFor[result.SummaryLine]().Fields() {
		totals = append(totals, f.Tag.Get("json"))
	}
	slices.Sort(totals)
	if have := column(summary); !slices.Equal(have, totals) {
		t.Errorf("the topic json has the fields\n%v of a summary, the program\n%v", have, totals)
	}
	kinds := []string{upload.LeaseHeld.String(), upload.PartDone.String(), upload.Undivided.String(), upload.Divided.String(), upload.InputWaits.String(), upload.InputContinues.String()}
	for k := range upload.Warning + 1 {
		kinds = append(kinds, k.String())
	}
	slices.Sort(kinds)
	if have := column(events); !slices.Equal(have, kinds) {
		t.Errorf("the topic json has the events\n%v, the program\n%v", have, kinds)
	}
	for f := range reflect.TypeFor[result.EventLine]().Fields() {
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !strings.Contains(events, "`"+key+"`") {
			t.Errorf("the topic json does not name the field %s of events", key)
		}
	}
}

// documents returns the pages, scripts and manifests that users read, by name. Those of the help are
// in docs/reference/reference.md.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "docs/how-to/schedulers/*", "fleet/*.md", "fleet/deploy/*"} {
		names, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			all[name] = string(text)
		}
	}
	return all
}

// TestDocumentedBuckets checks that the program accepts the names of buckets in the documents.
func TestDocumentedBuckets(t *testing.T) {
	checked := 0
	for page, text := range documents(t) {
		for _, m := range regexp.MustCompile(`gs://([a-z0-9][a-z0-9._-]*)`).FindAllStringSubmatch(text, -1) {
			checked++
			if err := (session.Spec{Bucket: strings.TrimRight(m[1], "."), Object: "o"}).Validate(); err != nil {
				t.Errorf("%s: %s: %v", page, m[0], err)
			}
		}
	}
	if checked < 50 {
		t.Errorf("found only %d buckets", checked)
	}
}

// TestDocumentedVersions checks that no document names a version or a page that exists only after a release.
func TestDocumentedVersions(t *testing.T) {
	for page, text := range documents(t) {
		for _, m := range regexp.MustCompile(`(?:gcsup(?:-fleet)?|fakegcs):v?\d\S*|pkg\.go\.dev/gcsup\S*`).FindAllString(text, -1) {
			t.Errorf("%s names %s, but there is no release", page, m)
		}
	}
}

// TestDocumentedRetries checks the numbers of retries in the topic retries, docs/explain/comparison.md and
// docs/library/from-storage-writer.md.
func TestDocumentedRetries(t *testing.T) {
	few, many := backoff.Retries(8<<20), backoff.Retries(1<<30)
	pages := documents(t)
	for name, c := range map[string]struct{ text, want string }{
		"the topic retries":                   {topicText("retries"), fmt.Sprintf("%d retries (half a minute) up to 8 MiB, %d (11 minutes) for 1 GiB", few, many)},
		"docs/explain/comparison.md":          {pages["../../docs/explain/comparison.md"], fmt.Sprintf("after %d retries, later for large files (1 GiB: 11 minutes)", few)},
		"docs/library/from-storage-writer.md": {pages["../../docs/library/from-storage-writer.md"], fmt.Sprintf("after %d retries in a row without a newly committed byte (at the %dth failure)", few, few+1)},
	} {
		if !strings.Contains(c.text, c.want) {
			t.Errorf("%s does not contain %q", name, c.want)
		}
	}
}

// TestDocumentedFaults checks the faults in the documents.
func TestDocumentedFaults(t *testing.T) {
	var plans []string
	for _, text := range documents(t) {
		plans = append(plans, regexp.MustCompile(`\[\{"match":.*\}\]`).FindAllString(text, -1)...)
	}
	if len(plans) < 3 {
		t.Fatalf("found only %d fault plans", len(plans))
	}
	for _, plan := range plans {
		if _, err := faults.Parse(strings.NewReader(plan)); err != nil {
			t.Errorf("%s: %v", plan, err)
		}
	}
}

// TestDocumentedTests checks that the tests that docs/maintain/test-results.md names exist, and how many fuzz targets
// there are.
func TestDocumentedTests(t *testing.T) {
	page, err := os.ReadFile("../../docs/maintain/test-results.md")
	require.NoError(t, err)
	var tests strings.Builder
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		tests.Write(text)
		return err
	})
	require.NoError(t, err)
	for _, name := range regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(page), -1) {
		if !strings.Contains(tests.String(), "\nfunc "+name) {
			t.Errorf("docs/maintain/test-results.md names %s, but there is no such test", name)
		}
	}
	if want := fmt.Sprintf("\n%d targets fuzz", strings.Count(tests.String(), "\nfunc Fuzz")); !strings.Contains(string(page), want) {
		t.Errorf("docs/maintain/test-results.md does not contain %q", want)
	}
}

// TestDocumentedLimits compares the numbers in docs/explain/limits.md with the constants of the code.
func TestDocumentedLimits(t *testing.T) {
	page := strings.Join(strings.Fields(documents(t)["../../docs/explain/limits.md"]), " ")
	for _, c := range []struct{ file, name, text string }{
		{"internal/breaker/breaker.go", "defaultThreshold", "opens after %s failures"},
		{"backoff/rate.go", "firstRateMin", "then from %s to"},
		{"backoff/rate.go", "firstRateMax", "to %s per second"},
		{"backoff/rate.go", "lowestFound", "never below %s"},
		{"upload/internal/batch/limiters.go", "firstSmall", "%s small, 4 large"},
		{"upload/internal/batch/limiters.go", "firstLarge", "32 small, %s large"},
		{"upload/internal/batch/limiters.go", "MaxSmall", "%s small, 64 large"},
		{"upload/internal/batch/limiters.go", "maxLarge", "small, %s large, fewer"},
		{"upload/internal/batch/failfast.go", "maxDenied", "Permission denied for %s objects"},
		{"upload/internal/connections/link.go", "connectionMemory", "one for each %s of `--memory`"},
		{"upload/internal/connections/link.go", "firstBytes", "the next %s show"},
		{"upload/internal/connections/link.go", "fastRate", "takes %s/s over one connection"},
		{"upload/internal/connections/link.go", "fastRateFar", "from %s/s"},
		{"upload/internal/connections/pool.go", "measuredFor", "used for %s"},
		{"upload/internal/connections/link.go", "tuneEvery", "interval of %s to 1 s"},
		{"upload/internal/connections/link.go", "Max", "at most | 1,024 small, 64 large, fewer if `ulimit -n` is low | %s, and one"},
		{"upload/internal/atrisk/atrisk.go", "First", "%s at first"},
		{"upload/internal/atrisk/atrisk.go", "Least", "%s after some commits"},
		{"upload/options.go", "defaultStreamMemory", "| %s, and always"},
		{"upload/internal/stream/memory.go", "minWindow", "always %s for a request"},
		{"upload/internal/engine/requestsizer.go", "firstSize", "%s at first, and less"},
		{"upload/internal/engine/requestsizer.go", "targetTime", "takes about %s"},
		{"upload/internal/netconn/step.go", "leastStep", "writes %s to"},
		{"upload/internal/netconn/step.go", "mostStep", "to %s at a time"},
		{"upload/options.go", "defaultStallRate", "a rate of %s/s"},
		{"upload/options.go", "defaultStallTimeout", "| %s behind"},
		{"upload/internal/engine/exchange.go", "joinTimeout", "%s for a request that makes an object"},
		{"internal/grace/grace.go", "Signal", "another one within %s"},
		{"internal/grace/grace.go", "Requests", "| %s | the service is asked once"},
		{"internal/grace/grace.go", "Call", "| %s | the call returns"},
		{"internal/grace/grace.go", "Output", "| %s | output that is not read"},
		{"internal/grace/grace.go", "Look", "is still saved (%s)"},
		{"internal/grace/grace.go", "Flush", "is not read (%s)"},
		{"internal/grace/grace.go", "Scrape", "is under way (%s)"},
		{"internal/grace/grace.go", "Store", "A store has %s in"},
	} {
		if want := fmt.Sprintf(c.text, constantText(t, "../../"+c.file, c.name)); !strings.Contains(page, want) {
			t.Errorf("%s, %s: docs/explain/limits.md does not contain %q", c.file, c.name, want)
		}
	}
}

// constantText returns a constant of a file as the documents write it: a number, a time or a size in bytes.
func constantText(t *testing.T, file, name string) string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	require.NoError(t, err)
	for n := range ast.Preorder(parsed) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			continue
		}
		for i, id := range spec.Names {
			if id.Name != name || i >= len(spec.Values) {
				continue
			}
			text := types.ExprString(spec.Values[i])
			value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, strings.NewReplacer(
				"time.Minute", "60_000_000_000", "time.Second", "1_000_000_000", "time.Millisecond", "1_000_000").Replace(text))
			if err != nil {
				t.Fatalf("%s: %s: %v", name, text, err)
			}
			v, _ := constant.Int64Val(constant.ToInt(value.Value))
			switch {
			case strings.Contains(text, "time.Minute"):
				return readable.Plural(int(v/int64(time.Minute)), "minute", "minutes")
			case strings.Contains(text, "time."):
				return fmt.Sprintf("%g s", time.Duration(v).Seconds())
			case strings.Contains(text, "<<"):
				return strings.Replace(readable.Bytes(v), ".0 ", " ", 1)
			}
			return humanize.Comma(v)
		}
	}
	t.Fatalf("%s has no constant %s", file, name)
	return ""
}
