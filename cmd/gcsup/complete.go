package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/backoff"
	"gcsup/internal/cli/cmdline"
	"gcsup/internal/retrysim"
)

// completeIDs offers the IDs of saved uploads to the shell, each with its source
// and destination.
func (f *targetFlags) completeIDs(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if _, err := setDefaults(cmd); err != nil || f.state.url != "" { // a shell should not wait for a bucket
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	store := f.lazyStore(nil)
	defer store.close()
	ids, err := store.List(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var offered []cobra.Completion
	for _, id := range ids {
		if slices.Contains(args, id) {
			continue
		}
		offered = append(offered, cobra.CompletionWithDesc(id, inFewWords(cmd.Context(), store, id)))
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

// addCompletions registers the values that a shell offers for the flags and arguments
// of all commands. By default, cobra offers files.
func addCompletions(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		addCompletions(c)
	}
	if cmd.ValidArgsFunction == nil && !cmdline.IsGroup(cmd) && cmd.Name() != "import" {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if complete := flagCompletion(f); complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails if the command has its own
		}
	})
}

// completes reports whether cmd is the one that a shell calls to complete a command line. It
// prints no messages, because it runs while the user types.
func completes(cmd *cobra.Command) bool {
	return cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd
}

// plainUsages removes the quotes around the names of values from the descriptions of all flags. A
// shell shows the descriptions as they are.
func plainUsages(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		plainUsages(c)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
}

// enumeration matches the values of a flag in its usage, such as fail|restart.
var enumeration = regexp.MustCompile(`^[A-Za-z0-9_-]+(\|[A-Za-z0-9_-]+)+$`)

// flagCompletion returns the completion of the values of a flag, or nil for files.
func flagCompletion(f *pflag.Flag) cobra.CompletionFunc {
	switch v := f.Value.(type) {
	case interface{ Values() []string }:
		return choices(v.Values()...)
	case *parallelFlag:
		return choices(parallelAuto.String(), parallelOff.String())
	}
	name, _ := pflag.UnquoteUsage(f)
	switch {
	case f.Name == "gzip":
		return completeExtensions
	case f.Name == "scenario":
		var names []cobra.Completion
		for _, s := range retrysim.Scenarios() {
			names = append(names, cobra.CompletionWithDesc(s.Name, s.About))
		}
		return choices(names...)
	case f.Name == "policy":
		return completePolicies
	case enumeration.MatchString(name):
		return choices(strings.Split(name, "|")...)
	case name == "DIR":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case strings.Contains(name, "FILE"), f.Value.Type() == "bool":
		return nil
	}
	return cobra.NoFileCompletions
}

// choices returns the completion of a flag that accepts these values.
func choices(values ...cobra.Completion) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var offered []cobra.Completion
		for _, v := range values {
			if strings.HasPrefix(v, prefix) {
				offered = append(offered, v)
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePolicies offers the next name of a list that is separated by commas.
func completePolicies(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	given := prefix[:strings.LastIndexByte(prefix, ',')+1]
	var offered []cobra.Completion
	for _, name := range backoff.Names() {
		if strings.HasPrefix(given+name, prefix) && !slices.Contains(strings.Split(given, ","), name) {
			offered = append(offered, given+name)
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completeExtensions offers the extensions of text, which compress well.
func completeExtensions(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	given := prefix[:strings.LastIndexByte(prefix, ',')+1]
	var offered []cobra.Completion
	if given == "" && strings.HasPrefix(gzipAll, prefix) {
		offered = append(offered, gzipAll)
	}
	for _, ext := range []string{"css", "csv", "html", "js", "json", "jsonl", "log", "svg", "txt", "xml"} {
		if strings.HasPrefix(given+ext, prefix) && !slices.Contains(strings.Split(given, ","), ext) {
			offered = append(offered, given+ext)
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// checkCompletionArgs makes cobra's completion command refuse wrong arguments. By
// default, it prints its help. The help describes what COMMAND is.
func checkCompletionArgs(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Short = "Write a script that completes commands in a shell"
		c.Long = `completion writes a script to standard output with which a shell completes commands,
flags, buckets and objects. COMMAND is the shell: bash, fish, powershell or zsh.
"gcsup help completion COMMAND" describes how to install the script. The packages for
Debian and Fedora contain it.`
		c.Example = `  source <(gcsup completion bash)
  gcsup completion zsh > "${fpath[1]}/_gcsup"
  gcsup completion fish > ~/.config/fish/completions/gcsup.fish`
		c.Args, c.RunE = cmdline.NoCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		for _, shell := range c.Commands() {
			shell.Args = cmdline.NoArgs
		}
	}
}
