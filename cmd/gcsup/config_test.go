package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/configfile"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
)

// TestRulesNameFlags checks that the names in the rules are those of flags, variables and arguments.
func TestRulesNameFlags(t *testing.T) {
	known := map[string]bool{stdinName: true, anySource: true, manySources: true}
	root := commands()
	for _, cmd := range leaves(root) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	names := slices.Concat(envRules.Exclusive...)
	for _, of := range []map[string][]string{envRules.Yields, envRules.Needs} {
		for name, others := range of {
			names = append(append(names, name), others...)
		}
	}
	for _, name := range names {
		if flag, _, _ := strings.Cut(name, "="); !known[flag] && !strings.HasPrefix(name, "$") {
			t.Errorf("%s is no flag", name)
		}
	}
}

// TestFileContradicts checks that a value in a file which contradicts the command line yields, unless
// more would be uploaded, replaced or deleted. Each command line is right without the file.
func TestFileContradicts(t *testing.T) {
	const key, kms = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=", "projects/p/locations/l/keyRings/r/cryptoKeys/k"
	for _, c := range []struct{ file, env, args, want string }{
		{"kms-key: " + kms, "GCSUP_ENCRYPTION_KEY=" + key, "cp a gs://bkt/a --emulator=em", ""},
		{"kms-key: " + kms, "", "cp a gs://bkt/a --emulator=em --encryption-key-file=key", ""},
		{"encryption-key-file: key", "", "cp a gs://bkt/a --emulator=em --kms-key=" + kms, ""},
		{"kms-key: " + kms + "\nencryption-key-file: key", "", "cp a gs://bkt/a --emulator=em", "--kms-key and --encryption-key-file exclude each other"},
		{"delete: true\nmax-delete: 5\ndelete-excluded: true", "", "sync dir gs://bkt/dir --emulator=em --delete=false", ""},
		{"max-delete: 5", "", "sync dir gs://bkt/dir --emulator=em", ""},
		{"remove-source: true\npreserve-posix: true\nshard: 0/2\nmin-size: 1M\nspool-limit: 1GiB", "", "cp - gs://bkt/a --emulator=em", ""},
		{"skip-identical: true\nmanifest: m\nexclude: [a]\nspool: spool", "", "cp - gs://bkt/a --emulator=em", ""},
		{"spool: spool\nspool-limit: 1GiB", "", "cp a gs://bkt/a --emulator=em", ""},
		{"null: true\ndirectory: dir", "", "cp a gs://bkt/a --emulator=em", ""},
		{"null: true\ndirectory: dir", "GCSUP_NULL=1", "cp a gs://bkt/a --emulator=em", ""},
		{"files-from: list", "", "cp a gs://bkt/a --emulator=em", ""},
		{"read-paths-from-stdin: true", "", "cp - gs://bkt/a --emulator=em", ""},
		{"recursive: true", "", "cp --files-from=list gs://bkt/a --emulator=em", ""},
		{"json: true", "", "cp a gs://bkt/a --emulator=em --report=-", ""},
		{"report: '-'", "", "cp a gs://bkt/a --emulator=em --json", ""},
		{"report: '-'", "", "cp a gs://bkt/a --emulator=em --dry-run", ""},
		{"report: '-'\njson: true", "", "cp a gs://bkt/a --emulator=em", "--report=- and --json both write to standard output"},
		{"manifest: m", "", "cp a gs://bkt/a --emulator=em --dry-run", ""},
		{"no-state: true", "", "cp a gs://bkt/a --emulator", ""},
		{"parallel-by: multipart", "", "cp a gs://bkt/a --emulator=em --no-clobber", ""},
		{"parallel-by: multipart", "", "cp a gs://bkt/a --emulator=em --if-generation-match=0", ""},
		{"extra: true", "", "verify a gs://bkt/a --emulator=em", ""},
		{"extra: true\nrecursive: true", "", "verify dir a gs://bkt/ --emulator=em", ""},
		{"extra: true\nrecursive: true", "", "verify dir gs://bkt/ --emulator=em --shard=0/2", ""},
		{"shard: 0/2\nrecursive: true", "", "verify dir gs://bkt/ --emulator=em --extra", ""},
		{"jobs: 8", "", "outbox run dir gs://bkt/ --emulator=em --ordered", ""},
		{"jobs: 8\noutbox run:\n  ordered: true", "", "outbox run dir gs://bkt/ --emulator=em", ""},
		{"fault-seed: 1\nfault-span: 1MiB\nhttp2: false\nbucket-split-after: 1m\nmemory: 64MiB", "", "emulator --addr=127.0.0.1:0 --dir=em", ""},
		{"fault-seed: 1\nrandom-faults: 1", "", "emulator --addr=127.0.0.1:0 --random-faults=0", ""},

		{"skip-identical: true", "", "cp a gs://bkt/a --emulator=em --no-clobber", ""},
		{"credentials-file: key", "", "cp a gs://bkt/a --emulator=em", ""},

		{"no-clobber: true", "", "cp a gs://bkt/a --emulator=em --skip-identical", "--no-clobber and --skip-identical exclude each other (--no-clobber is from config.yaml line 1)"},
		{"no-clobber: true", "GCSUP_SKIP_IDENTICAL=1", "cp a gs://bkt/a --emulator=em", "--no-clobber and --skip-identical exclude each other"},
		{"emulator: em", "GCSUP_CREDENTIALS_FILE=key", "cp a gs://bkt/a", "--emulator and --credentials-file exclude each other"},
		{"emulator: em", "", "cp a gs://bkt/a --impersonate-service-account=a@b.example", "--emulator and --impersonate-service-account exclude each other"},
		{"dry-run: true", "", "cp - gs://bkt/a --emulator=em", "--dry-run: a stream can only be uploaded (--dry-run is from "},
		{"dry-run: true", "", "cp a gs://bkt/a --emulator=em --manifest=m", "--dry-run and --manifest exclude each other"},
		{"ordered: true", "", "outbox run dir gs://bkt/ --emulator=em --jobs=8", "--ordered uploads one file at a time: leave out --jobs (--ordered is from "},
		{"no-clobber: true", "", "cp a gs://bkt/a --emulator=em --parallel-by=multipart", "--parallel-by=multipart: a multipart upload has no precondition"},
		{"emulator: true", "", "cp a gs://bkt/a --no-state", "--no-state: the emulator keeps its objects in the state directory"},
		{"min-size: 1M", "", "cp a gs://bkt/a --emulator=em --max-size=1K", "(--min-size is from config.yaml line 1)"},
	} {
		t.Run(c.file+c.env+" "+c.args, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			for name, text := range map[string]string{"config.yaml": c.file, "a": "x", "dir/b": "y", "key": key, "list": "a\n"} {
				require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
				require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
			}
			for _, name := range []string{"STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "GCSUP_STATE_DIR"} {
				t.Setenv(name, "")
			}
			t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
			t.Setenv(cmdline.Variable(configFlag), "config.yaml")
			if name, value, ok := strings.Cut(c.env, "="); ok {
				t.Setenv(name, value)
			}
			ctx := t.Context()
			if strings.HasPrefix(c.args, "outbox") || strings.HasPrefix(c.args, "emulator") { // they run until they are stopped
				stopped, cancel := context.WithCancel(ctx)
				cancel()
				ctx = stopped
			}
			var out, messages bytes.Buffer
			code := execute(ctx, strings.Fields(c.args), stdio{strings.NewReader("z"), &out, &messages})
			if got := messages.String(); (code == exit.Usage) != (c.want != "") || !strings.Contains(got, c.want) {
				t.Errorf("exit code %d, want an error %q; messages:\n%s", code, c.want, got)
			}
		})
	}
}

// TestKeptConfig checks that a configuration file of an earlier version is valid, and that one with a flag of a later
// version is refused with its line.
func TestKeptConfig(t *testing.T) {
	const path = "testdata/kept-config.yaml"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	root := commands()
	if _, err := configfile.Parse(path, text, configCommands(root), notInConfig); err != nil {
		t.Error(err)
	}
	_, err = configfile.Parse(path, append(text, "next-flag: 1\n"...), configCommands(root), notInConfig)
	if err == nil || !strings.Contains(err.Error(), `unknown flag "next-flag"`) {
		t.Errorf("with a later flag: %v", err)
	}
}
