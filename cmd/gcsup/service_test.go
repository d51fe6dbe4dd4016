package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gcsup/fakegcs"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
)

// blocks returns the fenced blocks of a guide in a language.
func blocks(t *testing.T, guide, language string) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/" + guide)
	require.NoError(t, err)
	var found []string
	for _, m := range regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		if m[1] == language {
			found = append(found, m[2])
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no block of %s", guide, language)
	}
	return found
}

// unit returns a unit of the packages, with the program and the bucket of the guides.
func unit(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../internal/dist/package/" + name)
	require.NoError(t, err)
	return strings.NewReplacer("=/usr/bin/gcsup", "=/usr/local/bin/gcsup", "${BUCKET}", "my-bucket").Replace(string(text))
}

// serviceCommands returns the command lines of the guides that upload a directory every night, without the
// name of the program.
func serviceCommands(t *testing.T) map[string][]string {
	t.Helper()
	commands := map[string][]string{}
	after := func(kind, text string) {
		m := regexp.MustCompile(`/usr/local/bin/gcsup (.*)`).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s: no command in %q", kind, text)
		}
		commands[kind] = strings.Fields(m[1])
	}
	after("unit", unit(t, "gcsup-backup.service"))
	after("changed unit", strings.ReplaceAll(blocks(t, "directory.md", "ini")[0], "${BUCKET}", "my-bucket"))
	after("cron", blocks(t, "directory.md", "crontab")[0])

	cron := decode(t, manifestOf(t, "kubernetes-nightly.yaml"))
	if cron.at("kind").text() != "CronJob" || cron.at("spec", "schedule").text() == "" || cron.at("spec", "concurrencyPolicy").text() != "Forbid" {
		t.Errorf("kubernetes-nightly.yaml is not run every night, one Job at a time: %v", cron.value)
	}
	pod := cron.at("spec", "jobTemplate", "spec", "template", "spec")
	c := pod.at("containers", 0)
	if pod.at("restartPolicy").text() != "OnFailure" || c.at("securityContext", "readOnlyRootFilesystem").text() != "true" {
		t.Errorf("unexpected pod: %v", pod.value)
	}
	// The files and the saved uploads are on volumes that outlive the pod.
	claims := map[string]string{}
	for i := range pod.at("volumes").len() {
		claims[pod.at("volumes", i, "name").text()] = pod.at("volumes", i, "persistentVolumeClaim", "claimName").text()
	}
	for i := range c.at("volumeMounts").len() {
		if name := c.at("volumeMounts", i, "name").text(); claims[name] == "" {
			t.Errorf("no volume claim for the mounted volume %q", name)
		}
	}
	commands["kubernetes"] = c.at("args").texts()
	return commands
}

// TestServiceCommands runs each command line twice: the first run uploads, the
// second one skips.
func TestServiceCommands(t *testing.T) {
	for kind, args := range serviceCommands(t) {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
			t.Setenv("STORAGE_EMULATOR_HOST", srv.URL)
			t.Setenv("GCSUP_STATE_DIR", filepath.Join(dir, "state"))
			args := slices.Clone(args)
			for i, arg := range args {
				if !strings.HasPrefix(arg, "/") {
					continue
				}
				at := filepath.Join(dir, arg)
				require.NoError(t, os.MkdirAll(at, 0o777))
				require.NoError(t, os.WriteFile(filepath.Join(at, "dump.sql"), make([]byte, 10<<20), 0o666))
				args[i] = at + "/."
			}
			args = append(args, "--json")
			for _, want := range []string{`"status":"ok"`, `"status":"skipped"`} {
				code, out, messages := gcsup(t, args...)
				if code != exit.OK || !strings.Contains(out, want) {
					t.Fatalf("gcsup %s: exit code %d: %s; no %s in %s", strings.Join(args, " "), code, messages, want, out)
				}
			}
		})
	}
}

// TestServiceOutbox runs the command line of the outbox, and that of PostgreSQL, until the file is uploaded.
func TestServiceOutbox(t *testing.T) {
	command := func(pattern, text string) []string {
		t.Helper()
		m := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no command in %q", text)
		}
		return strings.Fields(m[1])
	}
	page, err := os.ReadFile("../../docs/how-to/outbox.md")
	require.NoError(t, err)
	run := command(`/usr/local/bin/gcsup (.*)`, unit(t, "gcsup-wal.service"))
	put := command(`archive_command = '/usr/local/bin/gcsup (.*)'`, string(page))
	dir := t.TempDir()
	wal, segment := filepath.Join(dir, "wal"), filepath.Join(dir, "000000010000000000000001")
	for _, args := range [][]string{run, put} {
		for i, arg := range args {
			switch arg {
			case "/var/spool/wal":
				args[i] = wal
			case "%p":
				args[i] = segment
			}
		}
	}
	require.NoError(t, os.Mkdir(wal, 0o700))
	require.NoError(t, os.WriteFile(segment, make([]byte, 1<<20), 0o600))
	srv := fakegcs.NewServer(t, &fakegcs.Options{CreateBuckets: true})
	t.Setenv("STORAGE_EMULATOR_HOST", srv.URL)
	t.Setenv("GCSUP_STATE_DIR", filepath.Join(dir, "state"))
	if code, _, messages := gcsup(t, put...); code != exit.OK {
		t.Fatalf("gcsup %s: exit code %d: %s", strings.Join(put, " "), code, messages)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(wal, filepath.Base(segment))); errors.Is(err, os.ErrNotExist) {
				return
			}
		}
	}()
	var messages strings.Builder
	if code := execute(ctx, run, stdio{strings.NewReader(""), io.Discard, &messages}); code != exit.OK || messages.Len() > 0 {
		t.Errorf("gcsup %s: exit code %d: %s", strings.Join(run, " "), code, messages.String())
	}
	if o, ok := srv.Object("my-bucket", "wal/"+filepath.Base(segment)); !ok || o.Size != 1<<20 {
		t.Errorf("the object: %+v, %v", o, ok)
	}
}

// TestServiceUnits checks the units with systemd-analyze.
func TestServiceUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"gcsup-backup.service", "gcsup-backup.timer", "gcsup-wal.service"} {
		// systemd-analyze requires that the program and the man page exist.
		text := strings.ReplaceAll(unit(t, name), "/usr/local/bin/gcsup", "/bin/true")
		text = regexp.MustCompile("(?m)^Documentation=.*\n").ReplaceAllString(text, "")
		files = append(files, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	out, err := exec.Command(analyze, append([]string{"verify"}, files...)...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "gcsup-backup") || strings.Contains(line, "gcsup-wal") {
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
	if err != nil {
		t.Errorf("systemd-analyze verify: %v: %s", err, out)
	}
}
