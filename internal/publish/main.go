// Command publish gives the modules of this tree an import path with a domain, so that the tree can be pushed
// to a forge and its modules can be fetched:
//
//	go run ./internal/publish [-version VERSION] [-owner @NAME] example.com/you/gcsup
//
// It changes import paths and go.mod files, what the documents say about both, and the owner in CODEOWNERS.
// It changes only files that git lists, and only if all of them are committed: git checkout . undoes it.
// Run it again with the same path and the next version before each release.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	version := flag.String("version", "v0.1.0", "the version that the modules require of each other")
	owner := flag.String("owner", "", "the owner in CODEOWNERS (default: @ and the second element of the module path, if it has three)")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/publish [-version VERSION] [-owner @NAME] example.com/you/gcsup")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || flag.Arg(0) == "" {
		flag.Usage()
		os.Exit(2)
	}
	t := target{module: flag.Arg(0), version: *version, owner: *owner}
	if err := t.publish("."); err != nil {
		fmt.Fprintln(os.Stderr, "publish:", err)
		os.Exit(1)
	}
	fmt.Printf("The module is now %s. Look at the changes with git diff, test and commit them, and then run:\n\n", t.module)
	fmt.Printf("\tgit tag %s && git tag fleet/%[1]s && git tag upload/otel/%[1]s && git tag upload/closecheck/%[1]s && git push --tags origin HEAD\n", t.version)
}

// target is what the tree is published as.
type target struct {
	module, version string
	owner           string // of the code, as CODEOWNERS names it; "" for the default
}

var (
	modulePattern  = regexp.MustCompile(`^[a-z0-9-]+(\.[a-z0-9-]+)+(/[A-Za-z0-9._~-]+)+$`)
	versionPattern = regexp.MustCompile(`^v[01]\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	ownerPattern   = regexp.MustCompile(`^(@\S+|\S+@\S+)?$`)
)

func (t target) check() error {
	switch {
	case !modulePattern.MatchString(t.module):
		return fmt.Errorf("module path %q: want a domain and a path, such as example.com/you/gcsup", t.module)
	case !versionPattern.MatchString(t.version):
		return fmt.Errorf("version %q: want one such as v0.1.0; from v2 on, a module path must end in the major version", t.version)
	case !ownerPattern.MatchString(t.owner):
		return fmt.Errorf("owner %q: want a user or a team, such as @you", t.owner)
	}
	return nil
}

// publish rewrites the tree in dir.
func (t target) publish(dir string) error {
	if err := t.check(); err != nil {
		return err
	}
	changed, err := output(dir, "git", "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return err
	}
	if changed != "" {
		return fmt.Errorf("commit or stash your changes first, so that git checkout . can undo what this does:\n%s", changed)
	}
	list, err := output(dir, "git", "ls-files", "-z")
	if err != nil {
		return err
	}
	files := strings.Split(strings.TrimSuffix(list, "\x00"), "\x00")
	old, err := output(dir, "go", "list", "-m")
	if err != nil {
		return err
	}
	r := newRewriter(strings.TrimSpace(old), t, files)
	for _, file := range files {
		if err := r.rewriteFile(filepath.Join(dir, file)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if filepath.Base(file) == "go.mod" { // sorts the requirements
			if _, err := output(filepath.Join(dir, filepath.Dir(file)), "go", "mod", "edit", "-fmt"); err != nil {
				return err
			}
		}
	}
	return nil
}

func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, exit.Stderr)
	}
	return string(out), err
}

// rewriter has the patterns for a tree.
type rewriter struct {
	target
	packages *regexp.Regexp // the path of a package or of a nested module
	modules  *regexp.Regexp // in a go.mod file, the path of the main module
	versions *regexp.Regexp // in a go.mod file, a version of one of the modules
}

func newRewriter(old string, t target, files []string) rewriter {
	var tops []string // the directories at the top of the tree
	for _, file := range files {
		if top, _, nested := strings.Cut(file, "/"); nested && !slices.Contains(tops, regexp.QuoteMeta(top)) {
			tops = append(tops, regexp.QuoteMeta(top))
		}
	}
	if elements := strings.Split(t.module, "/"); t.owner == "" && len(elements) > 2 {
		t.owner = "@" + elements[1]
	}
	old = regexp.QuoteMeta(old)
	return rewriter{
		target: t,
		// The path of a file, such as /etc/gcsup/config.yaml, is not that of a package.
		packages: regexp.MustCompile(`(?m)(^|[^\w./~@-]|pkg\.go\.dev/)` + old + `/(\.\.\.|(?:` + strings.Join(tops, "|") + `)\b)`),
		modules:  regexp.MustCompile(`(?m)(^|\s)` + old + `(\s|$)`),
		versions: regexp.MustCompile(`(?m)(^|\s)(` + regexp.QuoteMeta(t.module) + `(?:/\S+)?) v\S+`),
	}
}

// unpublished is a passage of a document that is true only before the tree is published, and the passage
// that replaces it, which is in a comment until then.
var unpublished = regexp.MustCompile(`(?s)<!-- unpublished -->.*?<!-- published\n?(.*?)\n?-->`)

// rewrite returns the new text of a file.
func (r rewriter) rewrite(name string, text []byte) ([]byte, error) {
	switch {
	case filepath.Base(name) == "go.mod":
		text = r.modules.ReplaceAll(text, []byte("${1}"+r.module+"${2}"))
	case filepath.Base(name) == "CODEOWNERS" && r.owner != "":
		text = bytes.ReplaceAll(text, []byte("@OWNER"), []byte(r.owner))
	case filepath.Ext(name) == ".md":
		text = unpublished.ReplaceAll(text, []byte("${1}"))
	}
	text = r.packages.ReplaceAll(text, []byte("${1}"+r.module+"/${2}"))
	switch {
	case filepath.Base(name) == "go.mod":
		text = r.versions.ReplaceAll(text, []byte("${1}${2} "+r.version))
	case filepath.Ext(name) == ".go":
		return format.Source(text) // sorts the imports
	}
	return text, nil
}

// rewriteFile rewrites a file, unless it is a link or not a text.
func (r rewriter) rewriteFile(name string) error {
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	text, err := os.ReadFile(name)
	if err != nil || bytes.IndexByte(text, 0) >= 0 {
		return err
	}
	changed, err := r.rewrite(name, text)
	if err != nil || bytes.Equal(changed, text) {
		return err
	}
	return os.WriteFile(name, changed, info.Mode()&fs.ModePerm)
}
