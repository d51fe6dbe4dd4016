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
	Exclusive: [][]string{
		{"emulator", "endpoint"}, {"emulator", "credentials-file"}, {"emulator", "impersonate-service-account"},
		{"no-clobber", "if-generation-match"},
		{"no-clobber", "skip-identical"},
		{"files-from", "read-paths-from-stdin", "recursive"},
		{"dir", "discard"},
		{"no-state", "state-dir", "state"}, {"no-state", "spool"},
		{"state-key-file", "state-unsealed"},
		{"no-state", "state-key-file"}, {"no-state", "state-unsealed"},
		{"state-dir", "state-key-file"}, {"state-dir", "state-unsealed"},
		{"gzip", "content-encoding"}, {"remove-source", "follow-symlinks"},
		cmdline.ObjectExclusive, cmdline.TreeExclusive,
	},
	Firm: map[string][]string{
		"emulator":   {"credentials-file", "impersonate-service-account"},
		"no-clobber": {"skip-identical"},
	},
	Yields: yields(),
	Needs: map[string][]string{
		"state-key-file":  {"state"},
		"state-unsealed":  {"state"},
		"state-lease":     {"state"},
		"log-level":       {"log-file"},
		"spool":           {stdinName},
		"spool-limit":     {"spool"},
		"manifest-check":  {"manifest"},
		"null":            {"files-from", "read-paths-from-stdin"},
		"directory":       {"files-from", "read-paths-from-stdin"},
		"extra":           {"recursive", "recursive-too"},
		"delete-excluded": {"delete"},
		"max-delete":      {"delete"},

		"fault-seed":         {"random-faults"},
		"fault-span":         {"random-faults"},
		"http2":              {"tls"},
		"bucket-split-after": {"bucket-rate"},
	},
	Arguments: sourceArguments,
}

// yields returns the flags that yield to others. A flag does not yield if more would then be
// uploaded, replaced or deleted: dry-run, ordered, and no-clobber to parallel-by are errors.
func yields() map[string][]string {
	y := map[string][]string{
		"endpoint":              {"$STORAGE_EMULATOR_HOST"},
		"emulator":              {"$STORAGE_EMULATOR_HOST"},
		"credentials-file":      {"$GOOGLE_APPLICATION_CREDENTIALS"},
		"billing-project":       {"$GOOGLE_CLOUD_QUOTA_PROJECT"},
		"state-dir":             {"$" + process.StateDirEnv},
		"state":                 {"$" + process.StateDirEnv},
		"kms-key":               {"encryption-key-file", "$" + encryptionKeyEnv},
		"encryption-key-file":   {"kms-key", "$" + encryptionKeyEnv},
		"no-state":              {"emulator=" + noDir, "$" + process.StateDirEnv},
		"parallel-by=multipart": {"no-clobber", "if-generation-match"},
		"report=" + stdoutName:  {"json", "dry-run"},
		"recursive":             {"recursive-too"},
		"json":                  {"report=" + stdoutName},
		"jobs":                  {"ordered"},
		"memory":                {"dir", "discard"},
		"files-from":            {anySource},
		"read-paths-from-stdin": {anySource},
		"extra":                 {"shard", "files-from", "read-paths-from-stdin", manySources},
		"shard":                 {"extra"},
		"manifest":              {"dry-run"},
	}
	for _, name := range append([]string{"manifest", "skip-identical", "remove-source", "preserve-posix", "shard"}, cmdline.Selecting...) {
		y[name] = append(y[name], stdinName)
	}
	return y
}

// The names of SOURCE arguments in the rules. That of standard input is stdinName, too.
const (
	anySource   = "SOURCE"
	manySources = "SOURCE..."
)

// sourceArguments returns the names of the SOURCE arguments of a command in the rules.
func sourceArguments(cmd *cobra.Command) []string {
	args := cmd.Flags().Args()
	_, _, command := splitCommand(args, cmd.ArgsLenAtDash())
	switch {
	case cmd.Flags().Lookup("files-from") == nil || len(args) < 2: // the last one is the destination
		return nil
	case command: // it is a stream, too
		return []string{anySource, stdinName}
	case len(args) > 2:
		return []string{anySource, manySources}
	case args[0] == stdinName:
		return []string{anySource, stdinName}
	}
	return []string{anySource}
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
	for _, name := range cmdline.UnknownVariables(cmd.Root(), environ, []string{encryptionKeyEnv, cmdline.Variable("help")}) {
		console.Message("warning: %s is set, but no flag has this variable; see %s", name, cmdline.FlagsOf(cmd.Root()))
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
