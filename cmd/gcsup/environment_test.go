package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/exit"
	"gcsup/internal/require"
)

// TestEnvironmentBadValues checks that each flag of each command has a variable,
// and that a bad value is refused with the name of the variable.
func TestEnvironmentBadValues(t *testing.T) {
	const bad = "no such value"
	checked := 0
	for _, cmd := range leaves(commands()) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || slices.Contains(envRules.None, f.Name) || f.Value.Set(bad) == nil {
				return
			}
			checked++
			t.Run(cmd.CommandPath()+" --"+f.Name, func(t *testing.T) {
				var args []string
				for needs := envRules.Needs[f.Name]; needs != nil; needs = envRules.Needs[needs[0]] {
					if other := cmd.Flags().Lookup(needs[0]); other != nil {
						t.Setenv(cmdline.Variable(other.Name), validValue(other))
					} else {
						args = []string{needs[0], "gs://bkt/object"}
					}
				}
				t.Setenv(cmdline.Variable(f.Name), bad)
				same := commandOf(t, strings.Fields(cmd.CommandPath())[1:]...)
				require.NoError(t, same.ParseFlags(args))
				err := envRules.Set(same)
				want := cmdline.Variable(f.Name) + ` "` + bad + `": want `
				if err == nil || exit.Classify(err).Code != exit.Usage || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("error %v, want %s...", err, want)
				}
			})
		})
	}
	if checked < 30 {
		t.Errorf("only %d flags refuse a value", checked)
	}
}

// TestExclusiveFlags checks that two flags of each group are refused on the command line and in the
// environment, and that a flag of the command line replaces the variable of another one.
func TestExclusiveFlags(t *testing.T) {
	checked := 0
	for _, group := range envRules.Exclusive {
		for i, first := range group {
			for _, second := range group[i+1:] {
				for _, cmd := range []string{"cp", "verify", "doctor", "emulator"} {
					cmd := commandOf(t, cmd)
					if cmd.Flags().Lookup(first) == nil || cmd.Flags().Lookup(second) == nil {
						continue
					}
					checked++
					want := "--" + first + " and --" + second + " exclude each other"
					for _, name := range []string{first, second} {
						if err := envRules.Set(cmd); err != nil {
							t.Errorf("only --%s: %v", first, err)
						}
						require.NoError(t, cmd.Flags().Set(name, validValue(cmd.Flags().Lookup(name))))
					}
					if err := envRules.Set(cmd); err == nil || err.Error() != want || exit.Classify(err).Code != exit.Usage {
						t.Errorf("%s: error %v, want %s", cmd.Name(), err, want)
					}
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("checked %d pairs", checked)
	}
	t.Setenv("GCSUP_NO_CLOBBER", "true")
	t.Setenv("GCSUP_SKIP_IDENTICAL", "mtime")
	for args, want := range map[string]string{
		"": "--no-clobber and --skip-identical exclude each other", "--no-clobber": "", "--no-clobber=false": "",
		"--skip-identical": "--no-clobber and --skip-identical exclude each other", // which may replace objects
	} {
		cmd := commandOf(t, "cp")
		require.NoError(t, cmd.ParseFlags(strings.Fields(args)))
		got := ""
		if err := envRules.Set(cmd); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: error %q, want %q", args, got, want)
		}
	}
}

// validValue returns a value that a flag accepts and that is not the default.
func validValue(f *pflag.Flag) string {
	for _, value := range []string{f.NoOptDefVal, "1", "READER", "publicRead"} {
		if value != "" && f.Value.Set(value) == nil {
			return value
		}
	}
	return "x"
}

func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		args []string
		flag string
		want string
	}{
		{map[string]string{"GCSUP_LIMIT_RATE": "20MiB"}, nil, "limit-rate", "20MiB"},
		{map[string]string{"GCSUP_LIMIT_RATE": "20MiB"}, []string{"--limit-rate=1MiB"}, "limit-rate", "1MiB"},
		{map[string]string{"GCSUP_LIMIT_RATE": ""}, nil, "limit-rate", "0"},
		{map[string]string{"GCSUP_QUIET": "1"}, nil, "quiet", "true"},
		{map[string]string{"GCSUP_QUIET": "true"}, []string{"--quiet=false"}, "quiet", "false"},
		{map[string]string{"GCSUP_SKIP_IDENTICAL": "true"}, nil, "skip-identical", "crc32c"},
		{map[string]string{"GCSUP_SKIP_IDENTICAL": "mtime"}, nil, "skip-identical", "mtime"},
		{map[string]string{"GCSUP_SKIP_IDENTICAL": "mtime"}, []string{"--no-clobber"}, "skip-identical", ""},
		{map[string]string{"GCSUP_SKIP_IDENTICAL": "false"}, nil, "skip-identical", "off"},
		{map[string]string{"GCSUP_SKIP_IDENTICAL": "0", "GCSUP_NO_CLOBBER": "1"}, nil, "no-clobber", "true"}, // off excludes nothing
		{map[string]string{"GCSUP_SKIP_IDENTICAL": "off", "GCSUP_NO_CLOBBER": "1"}, nil, "no-clobber", "true"},
		{map[string]string{"GCSUP_NO_CLOBBER": "1"}, []string{"--skip-identical=off"}, "no-clobber", "true"},
		{map[string]string{"GCSUP_STATE": "gs://b", "GCSUP_STATE_KEY_FILE": "k"}, nil, "state-key-file", "k"},
		{map[string]string{"GCSUP_STATE": "gs://b", "GCSUP_STATE_KEY_FILE": "k"}, []string{"--state-dir=d"}, "state-key-file", ""},
		{map[string]string{"GCSUP_STATE_KEY_FILE": "k"}, nil, "state-key-file", ""},
		{map[string]string{"GCSUP_STATE_KEY_FILE": "k"}, []string{"--state=gs://b"}, "state-key-file", "k"},
		{map[string]string{"GCSUP_STATE": "gs://b", "GCSUP_STATE_UNSEALED": "1"}, []string{"--no-state"}, "state-unsealed", "false"},
		{map[string]string{"GCSUP_EMULATOR": "em"}, nil, "emulator", "em"},
		{map[string]string{"GCSUP_EMULATOR": "em"}, []string{"--endpoint=h"}, "emulator", ""},
		{map[string]string{"GCSUP_INCLUDE": "*.csv"}, nil, "include", "[*.csv]"},
		{map[string]string{"GCSUP_STATE_DIR": "/s"}, nil, "state-dir", ""}, // stateDir reads it
		{map[string]string{"GCSUP_HELP": "true"}, nil, "help", "false"},
	} {
		for name, value := range c.env {
			t.Setenv(name, value)
		}
		cmd := commandOf(t, "cp")
		cmd.InitDefaultHelpFlag()
		require.NoError(t, cmd.ParseFlags(c.args))
		if err := envRules.Set(cmd); err != nil {
			t.Errorf("%v %v: %v", c.env, c.args, err)
		}
		if got := cmd.Flags().Lookup(c.flag).Value.String(); got != c.want {
			t.Errorf("%v %v: --%s = %q, want %q", c.env, c.args, c.flag, got, c.want)
		}
		for name := range c.env {
			t.Setenv(name, "")
		}
	}
}
