package main

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"gcsup/fakegcs"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
)

// complete returns what the shell is offered for a command line.
func complete(t *testing.T, args ...string) string {
	t.Helper()
	code, out, _ := gcsup(t, append([]string{"__complete"}, args...)...)
	if code != exit.OK {
		t.Fatalf("__complete %q: exit code %d", args, code)
	}
	return out
}

var completionsDir = flag.String("completions", "", "write the completion scripts to this directory")

// TestCompletionScripts writes the scripts that packages install. It is a test for the same reason
// as TestManPages.
func TestCompletionScripts(t *testing.T) {
	dir := *completionsDir
	if dir == "" {
		dir = t.TempDir()
	}
	require.NoError(t, os.MkdirAll(dir, 0o777))
	for shell, file := range map[string]struct{ name, want string }{
		"bash": {"gcsup.bash", "complete -o default -F __start_gcsup gcsup\n"},
		"zsh":  {"_gcsup", "#compdef gcsup\n"},
		"fish": {"gcsup.fish", "complete -c gcsup "},
	} {
		code, script, messages := gcsup(t, "completion", shell)
		if code != exit.OK || !strings.Contains(script, file.want) {
			t.Errorf("completion %s: exit code %d: %s; no %q in %d bytes", shell, code, messages, file.want, len(script))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, file.name), []byte(script), 0o666))
	}
}

// TestCompletionScriptNotWritten checks that a script that cannot be written is an error.
func TestCompletionScriptNotWritten(t *testing.T) {
	var messages strings.Builder
	code := execute(t.Context(), []string{"completion", "bash"}, stdio{strings.NewReader(""), fullDisk{}, &messages})
	if code != exit.IO || !strings.Contains(messages.String(), "standard output: no space left") {
		t.Errorf("exit code %d: %s", code, messages.String())
	}
}

// fullDisk is a writer that fails.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestCompleteEnumerations checks that the shell is offered the values of each flag whose help lists
// them as --flag a|b.
func TestCompleteEnumerations(t *testing.T) {
	root := commands()
	label := regexp.MustCompile(`^--([a-z0-9-]+)(?: |\[=)([A-Za-z0-9_-]+(?:\|[A-Za-z0-9_-]+)+)\]?$`)
	checked := 0
	for _, cmd := range leaves(root) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			m := label.FindStringSubmatch(cmdline.Label(f))
			if m == nil || f.Hidden {
				return
			}
			checked++
			want := strings.Split(m[2], "|")
			out := complete(t, append(strings.Fields(cmd.CommandPath())[1:], "--"+f.Name+"=")...)
			if got := strings.Split(out, "\n"); strings.Join(got[:min(len(want), len(got))], " ") != strings.Join(want, " ") {
				t.Errorf("%s --%s: offered %q, want %q", cmd.CommandPath(), f.Name, out, want)
			}
		})
	}
	if checked < 4 {
		t.Errorf("found only %d flags with a list of values", checked)
	}
}

// TestCompleteURLs checks that the shell is offered buckets and objects, and local files only for
// what is no URL.
func TestCompleteURLs(t *testing.T) {
	server := fakegcs.NewServer(t, &fakegcs.Options{})
	t.Setenv("STORAGE_EMULATOR_HOST", server.URL)
	t.Setenv("GCSUP_STATE_DIR", t.TempDir())
	t.Chdir(t.TempDir())
	for _, name := range []string{"demo", "demo-2", "other"} {
		require.NoError(t, server.CreateBucket(fakegcs.Bucket{Name: name}))
	}
	for _, name := range []string{"a/b/c.txt", "a/d.txt", "all", "with space", "x"} {
		require.NoError(t, os.WriteFile("f", []byte(name), 0o600))
		if code, _, messages := gcsup(t, "cp", "f", "gs://demo/"+name); code != exit.OK {
			t.Fatal(messages)
		}
	}
	const files, noFiles, open = ":0\n", ":4\n", ":6\n" // open: no space follows
	for _, c := range []struct{ args, want string }{
		{"cp|f|gs://", "gs://demo/\ngs://demo-2/\ngs://other/\n" + open},
		{"cp|f|gs:/", "gs://demo/\ngs://demo-2/\ngs://other/\n" + open},
		{"cp|f|gs://de", "gs://demo/\ngs://demo-2/\n" + open},
		{"cp|f|gs://demo/", "gs://demo/a/\ngs://demo/all\ngs://demo/with space\ngs://demo/x\n" + open},
		{"cp|f|gs://demo/a/", "gs://demo/a/b/\ngs://demo/a/d.txt\n" + open},
		{"cp|f|gs://demo/al", "gs://demo/all\n" + noFiles},
		{"cp|f|gs://demo/none", noFiles},
		{"cp|f|gs://no-such-bucket/", noFiles},
		{"cp|--endpoint=http://127.0.0.1:1|f|gs://demo/", noFiles},
		{"cp|--emulator|f|gs://", noFiles},
		{"cp|f|g", "gs://\n" + open},
		{"cp|f|", files},
		{"cp|f", files},
		{"verify|f|gs://demo/a/b", "gs://demo/a/b/\n" + open},
		{"doctor|", "gs://demo/\ngs://demo-2/\ngs://other/\n" + open},
		{"doctor|/", noFiles},
	} {
		if got := complete(t, strings.Split(c.args, "|")...); got != c.want {
			t.Errorf("%s: %q, want %q", c.args, got, c.want)
		}
	}
	require.NoError(t, os.WriteFile("gsutil.log", nil, 0o600))
	if got := complete(t, "cp", "g"); got != files {
		t.Errorf("with a file gsutil.log: %q, want %q", got, files)
	}
}

func TestProject(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CLOUDSDK_CONFIG", dir)
	for _, name := range []string{"GOOGLE_CLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_ACTIVE_CONFIG_NAME"} {
		t.Setenv(name, "")
	}
	var f targetFlags
	check := func(want string) {
		t.Helper()
		if got := f.project(); got != want {
			t.Errorf("project %q, want %q", got, want)
		}
	}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	check("")
	write("configurations/config_work", "[compute]\nproject = wrong\n[core]\naccount = a@example.com\nproject = of-gcloud\n")
	check("")
	write("active_config", "work\n")
	check("of-gcloud")
	write("application_default_credentials.json", `{"quota_project_id": "of-user"}`)
	check("of-user")
	write("key.json", `{"project_id": "of-account", "quota_project_id": "other"}`)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(dir, "key.json"))
	check("of-account")
	t.Setenv("CLOUDSDK_CORE_PROJECT", "of-variable")
	check("of-variable")
	f.billing = "of-flag"
	check("of-flag")
}
