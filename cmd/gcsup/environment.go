package main

import (
	"os"
	"strconv"

	"github.com/spf13/pflag"

	"gcsup/internal/cli/flagenv"
	"gcsup/internal/cli/treeflags"
)

// envRules decide which environment variables set flags. Images and CI systems set
// GCSUP_VERSION to a version. stateDir reads GCSUP_STATE_DIR itself.
var envRules = flagenv.Rules{
	None: []string{"help", "version", "state-dir"},
	Exclusive: [][]string{
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
		treeflags.Exclusive,
	},
	Needs: map[string]string{
		"state-key-file": "state",
		"state-unsealed": "state",
		"state-lease":    "state",
		"log-level":      "log-file",
	},
}

// wordsFromEnv returns the flags that got their values from the environment, as words
// of a command line. It leaves out the headers, whose values may be secret, and
// --restart, which would discard what was sent.
func wordsFromEnv(flags *pflag.FlagSet) (words []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !flagenv.Used(f) || f.Name == "additional-headers" || f.Name == "restart" {
			return
		}
		word := "--" + f.Name
		value := os.Getenv(flagenv.Name(f.Name))
		if on, err := strconv.ParseBool(value); f.NoOptDefVal == "" || err != nil || !on {
			word += "=" + value
		}
		words = append(words, word)
	})
	return words
}
