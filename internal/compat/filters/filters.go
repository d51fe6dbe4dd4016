// Package filters compares the files that patterns of --include and --exclude select in
// gcsup with those that they select in the rclone in PATH. The patterns are those of
// upload/tree/testdata/patterns.txt, and random ones. The exit code is 1 if they differ.
//
// gcsup has three differences on purpose. They are expressed in the rules that rclone
// gets: a pattern comes a second time with "/**" at its end, because it also selects a
// directory with all below, and excludes come before includes.
//
// The third one: rclone does not look for --include=deep/*.txt in ab, although the pattern
// matches ab/deep/a.txt. A regular expression, as its manual explains, makes rclone look in
// all directories.
package filters

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"gcsup/upload"
	"gcsup/upload/tree"
)

// Main is the program. It returns its exit code.
func Main(args []string) int {
	flags := flag.NewFlagSet("filters", flag.ExitOnError)
	table := flags.String("table", "upload/tree/testdata/patterns.txt", "the `FILE` of the patterns")
	count := flags.Int("random", 100, "how many random sets of patterns")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()), "the seed of the random patterns")
	_ = flags.Parse(args) // which ends the program if it fails
	if err := run(context.Background(), *table, *count, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "FAIL filters:", err)
		return 1
	}
	return 0
}

// patterns is a set of patterns. want are the files that it selects, if they are known.
type patterns struct {
	include, exclude []string
	want             []string
}

func run(ctx context.Context, table string, count int, seed uint64) error {
	text, err := os.ReadFile(table)
	if err != nil {
		return err
	}
	files, sets := parse(string(text))
	known := len(sets)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range count {
		sets = append(sets, patterns{include: randomPatterns(rnd), exclude: randomPatterns(rnd)})
	}
	root, err := os.MkdirTemp("", "filters")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	for _, name := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
	}
	url, stop, err := serve(ctx)
	if err != nil {
		return err
	}
	defer stop()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU())
	for _, p := range sets {
		g.Go(func() error { return p.check(ctx, url, root) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("%w (-seed %d)", err, seed)
	}
	fmt.Printf("ok   rclone and gcsup select the same files for %d cases of the table, and %d random sets of patterns\n", known, count)
	return nil
}

// parse returns the files of the tree and the patterns of a table.
func parse(text string) (files []string, sets []patterns) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		pattern, selected, _ := strings.Cut(line, "\t")
		if files == nil {
			files = strings.Fields(selected)
			continue
		}
		want := strings.Fields(selected)
		slices.Sort(want)
		sets = append(sets, patterns{include: []string{pattern}, want: append([]string{}, want...)})
		rest := slices.DeleteFunc(slices.Clone(files), func(name string) bool { return slices.Contains(want, name) })
		slices.Sort(rest)
		sets = append(sets, patterns{exclude: []string{pattern}, want: append([]string{}, rest...)})
	}
	return files, sets
}

// randomPatterns returns up to two patterns that match some files of the table.
func randomPatterns(rnd *rand.Rand) (all []string) {
	elements := []string{
		"a", "ab", "sub", "deep", "a.txt", "c.jpg", "x.jpg", ".git", "config", "ax", "*", "**", "*.txt", "*.jpg", "?", "a*", "*x", "**x", "a**",
		"{a,ab}", "{sub,ab,x.jpg}", "*.{txt,jpg}", "[a-s]*", "[^s]*", "{{a.}}", "{{[a-z]+}}", "*{{x$}}",
	}
	for range rnd.IntN(3) {
		p := elements[rnd.IntN(len(elements))]
		for rnd.IntN(2) == 0 {
			p += "/" + elements[rnd.IntN(len(elements))]
		}
		if rnd.IntN(3) == 0 {
			p = "/" + p
		}
		if rnd.IntN(3) == 0 {
			p += "/"
		}
		all = append(all, p)
	}
	return all
}

// check compares the files that gcsup and rclone select.
func (p patterns) check(ctx context.Context, url, root string) error {
	ours, err := p.gcsup(ctx, root)
	if err != nil {
		return err
	}
	theirs, err := p.rclone(ctx, url, root)
	if err != nil {
		return err
	}
	if !slices.Equal(ours, theirs) || p.want != nil && !slices.Equal(ours, p.want) {
		return fmt.Errorf("--include %q --exclude %q:\n gcsup  %q\n rclone %q\n want   %q", p.include, p.exclude, ours, theirs, p.want)
	}
	return nil
}

func (p patterns) gcsup(ctx context.Context, root string) (selected []string, err error) {
	t, err := tree.New([]tree.Source{{Path: root}}, upload.Spec{Bucket: "b"}, &tree.Options{Include: p.include, Exclude: p.exclude})
	if err != nil {
		return nil, err
	}
	for job := range t.Walk(ctx) {
		if job.Err != nil {
			return nil, job.Err
		}
		selected = append(selected, job.Spec.Object)
	}
	slices.Sort(selected)
	return selected, nil
}

// rclone asks the rclone at url, because starting one for each of some hundred sets takes minutes.
func (p patterns) rclone(ctx context.Context, url, root string) (selected []string, err error) {
	var rules []string
	add := func(sign string, patterns []string) {
		for _, pattern := range patterns {
			if dir, ok := strings.CutSuffix(pattern, "/"); ok {
				rules = append(rules, sign+dir+"/**")
			} else {
				rules = append(rules, sign+pattern, sign+pattern+"/**")
			}
		}
	}
	add("- ", p.exclude)
	add("+ ", p.include)
	if p.include != nil {
		rules = append(rules, "+ {{never matches\\z.}}", "- **")
	}
	body, err := json.Marshal(map[string]any{
		"fs": root, "remote": "", "opt": map[string]bool{"recurse": true, "filesOnly": true}, "_filter": map[string]any{"FilterRule": rules},
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"operations/list", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var listed struct{ List []struct{ Path string } }
	if err := json.Unmarshal(answer, &listed); err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("rclone with the rules %q: %s: %s", rules, resp.Status, answer)
	}
	for _, file := range listed.List {
		selected = append(selected, file.Path)
	}
	slices.Sort(selected)
	return selected, nil
}

// serve starts an rclone that answers requests at url until it is stopped.
func serve(ctx context.Context) (url string, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "rclone", "rcd", "--rc-no-auth", "--rc-addr=127.0.0.1:0")
	cmd.Env = append(os.Environ(), "RCLONE_CONFIG=/dev/null")
	log, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return "", nil, err
	}
	stop = func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			stop()
			return "", nil, fmt.Errorf("rclone rcd did not start: %w", err)
		}
		if _, address, ok := strings.Cut(strings.TrimSpace(line), "Serving remote control on "); ok {
			go func() { _, _ = io.Copy(os.Stderr, lines) }()
			return address, stop, nil
		}
	}
}
