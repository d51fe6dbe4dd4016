package cmdline

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

// flagsName and topicsName are topics that programs have beside their own.
const (
	flagsName  = "flags"
	topicsName = "topics"
)

// NewHelp returns a help command that fails for an unknown command or topic. Cobra's own
// command prints the help of the program and exits with 0. Its subcommands are the topics.
func NewHelp(h *Help) *cobra.Command {
	help := &cobra.Command{Use: "help [COMMAND | TOPIC | flags [COMMAND]]", Short: "Help on a command or a topic", RunE: printer(h.Command)}
	flags := &cobra.Command{Use: flagsName + " [COMMAND]", Short: "All flags of a command, or of all commands", RunE: printer(h.Flags)}
	help.ValidArgsFunction, flags.ValidArgsFunction = completeCommands, completeCommands
	help.AddCommand(flags)
	list := Topic{Name: topicsName, Short: "A list of the topics", Text: "The help has these topics:"}
	for _, t := range h.Topics {
		list.Entries = append(list.Entries, Entry{t.Name, t.Short})
	}
	list.Entries = append(list.Entries, Entry{flagsName, flags.Short})
	for _, t := range append(slices.Clone(h.Topics), list) {
		help.AddCommand(&cobra.Command{Use: t.Name, Short: t.Short, Args: NoArgs, RunE: printer(func(*cobra.Command) string { return h.Topic(t) })})
	}
	return help
}

// printer returns a function that prints the text about the command that its arguments name.
func printer(text func(*cobra.Command) string) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, rest, err := cmd.Root().Find(args)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return unknownTopic(cmd, c, rest[0])
		}
		c.InitDefaultHelpFlag() // so that the help lists --help
		_, err = io.WriteString(cmd.OutOrStdout(), text(c))
		return err
	}
}

// unknownTopic is the error of a name that is neither a topic below help nor a command below cmd.
func unknownTopic(help, cmd *cobra.Command, name string) error {
	if near := Nearest(name, commandNames(help)); near != "" && !cmd.HasParent() {
		return exit.Usagef("unknown command or topic %q, did you mean %s help %s?", name, process.Words(), near)
	}
	return unknownCommand(cmd, name)
}

// completeCommands offers the commands below the one that args name.
func completeCommands(cmd *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	if c, rest, err := cmd.Root().Find(args); err == nil && len(rest) == 0 {
		for _, e := range Commands(c) {
			names = append(names, cobra.CompletionWithDesc(e.Term, e.Text))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
