package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"gcsup/backoff"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/shell"
	"gcsup/internal/require"
	"gcsup/upload"
)

func parsed(t *testing.T, args ...string) (*cpFlags, *pflag.FlagSet) {
	t.Helper()
	var f cpFlags
	fs := pflag.NewFlagSet("cp", pflag.ContinueOnError)
	f.target.addReading(fs)
	f.send.add(fs)
	f.output.add(fs)
	fs.String(configFlag, "", "")
	require.NoError(t, fs.Parse(args))
	return &f, fs
}

func TestSendOptions(t *testing.T) {
	f, _ := parsed(t)
	got, err := f.send.options()
	require.NoError(t, err)
	if _, err := upload.New(nil, &got); err != nil {
		t.Errorf("defaults: %v", err)
	}
	f, _ = parsed(t, "--stall-timeout=0", "--retry-for=1h", "--chunk-size=8MiB", "--max-wait=59s", "--if-source-changed=restart", "--stall-rate=1KiB", "--no-circuit-breaker")
	got, err = f.send.options()
	if err != nil || got.StallTimeout >= 0 || got.RetryFor != time.Hour || got.ChunkSize != 8<<20 ||
		got.Policy.Maximum != 59*time.Second || !got.RestartChanged || got.StallRate != 1024 || got.Breaker != backoff.NoBreaker {
		t.Errorf("options %+v, %v", got, err)
	}
	for _, arg := range []string{
		"--max-wait=1m", "--max-wait=0", "--stall-rate=0", "--if-source-changed=maybe",
	} {
		f, _ := parsed(t, arg)
		if _, err := f.send.options(); err == nil || exit.Classify(err).Code != exit.Usage {
			t.Errorf("%s: error %v, want a usage error", arg, err)
		}
	}
}

func TestResumeCommand(t *testing.T) {
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	for _, c := range []struct {
		args []string
		env  map[string]string
		want string
	}{
		{nil, nil, "gcsup resume ID"},
		{[]string{"-q", "--json", "-v", "--additional-headers=X-A=hunter2"}, nil, "gcsup resume ID"},
		{[]string{"--state-dir=st", "--chunk-size=8MiB"}, nil, "gcsup resume ID --chunk-size=8MiB " + shell.Quote("--state-dir="+here+"/st")},
		{[]string{"--state-dir=/a b'c"}, nil, `gcsup resume ID '--state-dir=/a b'\''c'`},
		{[]string{"--endpoint=http://h:1"}, map[string]string{"STORAGE_EMULATOR_HOST": "other:2"}, "gcsup resume ID --endpoint=http://h:1"},
		{nil, map[string]string{"STORAGE_EMULATOR_HOST": "h:1", "GCSUP_STATE_DIR": "/s"}, "STORAGE_EMULATOR_HOST=h:1 gcsup resume ID --state-dir=/s"},
		{[]string{"--emulator"}, map[string]string{"STORAGE_EMULATOR_HOST": "h:1"}, "gcsup resume ID --emulator"},
		{[]string{"--emulator=em"}, nil, "gcsup resume ID " + shell.Quote("--emulator="+here+"/em")},
		{[]string{"--limit-rate=0", "--memory=64B"}, nil, "gcsup resume ID --limit-rate=0 --memory=64B"},
		{[]string{"--no-circuit-breaker"}, nil, "gcsup resume ID --no-circuit-breaker"},
		{[]string{"--config=my.yaml"}, nil, "gcsup resume ID " + shell.Quote("--config="+here+"/my.yaml")},
		{[]string{"--config="}, nil, "gcsup resume ID --config="}, // without that, the user's file would be read
		{[]string{"--retry-for=90m", "--if-source-changed=restart"}, nil, "gcsup resume ID --if-source-changed=restart --retry-for=1h30m0s"},
	} {
		t.Setenv("STORAGE_EMULATOR_HOST", c.env["STORAGE_EMULATOR_HOST"])
		t.Setenv("GCSUP_STATE_DIR", c.env["GCSUP_STATE_DIR"])
		_, fs := parsed(t, c.args...)
		got := resumeCommand("gcsup", fs, "ID")
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
}

func TestStateDir(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("LocalAppData", "")
	t.Setenv(process.StateDirEnv, "")
	dir := t.TempDir()
	if got, err := stateDir(dir); err != nil || got != dir {
		t.Errorf("stateDir(%q) = %q, %v", dir, got, err)
	}
	if got, err := stateDir(""); err == nil || exit.Classify(err).Code != exit.Config {
		t.Errorf("stateDir without a default = %q, %v, want a configuration error", got, err)
	}
	t.Setenv(process.StateDirEnv, dir)
	if got, err := stateDir(""); err != nil || got != dir {
		t.Errorf("stateDir with %s=%s = %q, %v", process.StateDirEnv, dir, got, err)
	}
}
