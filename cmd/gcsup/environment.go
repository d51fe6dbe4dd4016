package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/failure"
	"gcsup/internal/usage"
)

// envPrefix begins the name of the environment variable of every flag.
const envPrefix = "GCSUP_"

// envName returns the environment variable of a flag: GCSUP_LIMIT_RATE for
// --limit-rate.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// noEnv are the flags without a variable. Images and CI systems set GCSUP_VERSION
// to a version. stateDir reads GCSUP_STATE_DIR itself.
var noEnv = []string{"help", "version", "state-dir"}

// exclusive are flags that exclude each other. One of them on the command line
// has priority over the variables of the others.
var exclusive = [][]string{
	{"emulator", "endpoint"},
	{"no-clobber", "if-generation-match"},
	{"no-clobber", "skip-identical"},
	{"files-from", "read-paths-from-stdin", "recursive"},
	{"dry-run", "manifest"},
	{"dir", "discard"},
	{"no-state", "state-dir", "state"},
	{"state-key-file", "state-unsealed"},
	{"no-state", "state-key-file"}, {"no-state", "state-unsealed"},
	{"state-dir", "state-key-file"}, {"state-dir", "state-unsealed"},
	{"gzip", "content-encoding"},
}

// needs are flags that are an error without another one. Their variables count only if
// that one is set.
var needs = map[string]string{
	"state-key-file": "state",
	"state-unsealed": "state",
	"state-lease":    "state",
}

// setFromEnv sets the flags of cmd that are not on the command line to the values
// of their environment variables. An empty variable counts as not set. Errors do
// not contain the values of flags that can be secret.
func setFromEnv(cmd *cobra.Command) error {
	var err error
	given := map[string]bool{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = true })
	overridden := func(name string) bool {
		return given[name] || slices.ContainsFunc(exclusive, func(group []string) bool {
			return slices.Contains(group, name) && slices.ContainsFunc(group, func(other string) bool { return given[other] })
		})
	}
	useless := func(name string) bool {
		other, ok := needs[name]
		return ok && !given[other] && (os.Getenv(envName(other)) == "" || overridden(other))
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		value := os.Getenv(envName(f.Name))
		if err != nil || value == "" || f.Hidden || slices.Contains(noEnv, f.Name) || overridden(f.Name) || useless(f.Name) {
			return
		}
		if f.NoOptDefVal != "" && f.Value.Type() != "bool" {
			switch on, boolErr := strconv.ParseBool(value); {
			case boolErr != nil:
			case !on:
				return // false is no directory
			default:
				value = f.NoOptDefVal // as the flag without a value
			}
		}
		if setErr := cmd.Flags().Set(f.Name, value); setErr != nil {
			err = failure.Usagef("%s %q: %s; see %s", envName(f.Name), value, usage.Wanted(f, setErr), usage.Help(cmd))
		}
		f.Annotations = map[string][]string{fromEnv: nil}
	})
	return err
}

// fromEnv annotates a flag that got its value from the environment.
const fromEnv = "gcsup_from_environment"

// wordsFromEnv returns the flags that got their values from the environment, as words
// of a command line. It leaves out the headers, whose values may be secret, and
// --restart, which would discard what was sent.
func wordsFromEnv(flags *pflag.FlagSet) (words []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Annotations[fromEnv]; !ok || f.Name == "additional-headers" || f.Name == "restart" {
			return
		}
		word := "--" + f.Name
		value := os.Getenv(envName(f.Name))
		if on, err := strconv.ParseBool(value); f.NoOptDefVal == "" || err != nil || !on {
			word += "=" + value
		}
		words = append(words, word)
	})
	return words
}

// explainEnv adds to a usage error which of the flags in it came from the
// environment.
func explainEnv(cmd *cobra.Command, err error) error {
	if cmd == nil || !errors.Is(err, failure.ErrUsage) {
		return err
	}
	text := err.Error()
	var variables []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Annotations[fromEnv]; ok && mentions(text, "--"+f.Name) {
			variables = append(variables, fmt.Sprintf("--%s is from %s", f.Name, envName(f.Name)))
		}
	})
	if len(variables) == 0 {
		return err
	}
	return failure.WithKind(fmt.Errorf("%w (%s)", err, strings.Join(variables, ", ")), failure.ErrUsage)
}

// mentions reports whether text has flag as a whole word.
func mentions(text, flag string) bool {
	for {
		_, rest, found := strings.Cut(text, flag)
		if !found {
			return false
		}
		if rest == "" || rest[0] != '-' && (rest[0] < 'a' || rest[0] > 'z') {
			return true
		}
		text = rest
	}
}
