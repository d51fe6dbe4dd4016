package main

import (
	"io"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/configfile"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/screen"
)

// envRules decide which values of the environment and of a file set flags, and which flags exclude each other. Images and CI systems set
// GCSUP_VERSION to a version. stateDir reads GCSUP_STATE_DIR itself. A name is that of one file.
var envRules = cmdline.Rules{
	None: []string{"help", "version", "state-dir", "name", "source"},
	Reads: map[string]string{
		"state-dir":           process.StateDirEnv,
		"encryption-key-file": encryptionKeyEnv,
		"endpoint":            "STORAGE_EMULATOR_HOST",
		"emulator":            "STORAGE_EMULATOR_HOST",
		"credentials-file":    "GOOGLE_APPLICATION_CREDENTIALS",
		"billing-project":     "GOOGLE_CLOUD_QUOTA_PROJECT",
	},
	Exclusive: [][]string{
		{"emulator", "endpoint"}, {"emulator", "credentials-file"}, {"emulator", "impersonate-service-account"},
		{"no-clobber", "if-generation-match"},
		{"no-clobber", "skip-identical"},
		{"files-from", "read-paths-from-stdin", "recursive"},
		{"dry-run", "manifest"},
		{"dir", "discard"},
		{"no-state", "state-dir", "state"}, {"no-state", "spool"},
		{"state-key-file", "state-unsealed"},
		{"no-state", "state-key-file"}, {"no-state", "state-unsealed"},
		{"state-dir", "state-key-file"}, {"state-dir", "state-unsealed"},
		{"gzip", "content-encoding"}, {"remove-source", "follow-symlinks"},
		cmdline.ObjectExclusive, cmdline.TreeExclusive,
	},
	Needs: map[string]string{
		"state-key-file": "state",
		"state-unsealed": "state",
		"state-lease":    "state",
		"log-level":      "log-file",
		"spool-limit":    "spool",

		"delete-excluded": "delete",
		"max-delete":      "delete",
	},
}

// warnOfSettings prints a warning for each variable of the environment that looks like one of
// a flag and is none, and for a configuration file that others can change. file can be nil.
func warnOfSettings(cmd *cobra.Command, w io.Writer, file *configfile.File, environ []string) {
	quiet := cmd.Flags().Lookup("quiet")
	if quiet != nil && quiet.Value.String() == "true" {
		return
	}
	console := screen.NewConsole(w, false)
	if file != nil && file.Risk != nil {
		console.Message("warning: configuration file: %v", file.Risk)
	}
	described := cmd
	if cmd.Name() == "help" {
		described = cmd.Root() // which describes the variables
	}
	for _, name := range cmdline.UnknownVariables(cmd.Root(), environ, []string{encryptionKeyEnv, cmdline.Variable("help")}) {
		console.Message("warning: %s is set, but no flag has this variable; see %s", name, cmdline.HelpOf(described))
	}
}

// wordsFromEnv returns the flags that got their values from the environment, as words
// of a command line. It leaves out the headers, whose values may be secret, and
// --restart, which would discard what was sent.
func wordsFromEnv(flags *pflag.FlagSet) (words []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !cmdline.FromEnvironment(f) || f.Name == "additional-headers" || f.Name == "restart" {
			return
		}
		word := "--" + f.Name
		value := os.Getenv(cmdline.Variable(f.Name))
		if on, err := strconv.ParseBool(value); f.NoOptDefVal == "" || err != nil || !on {
			word += "=" + value
		}
		words = append(words, word)
	})
	return words
}
