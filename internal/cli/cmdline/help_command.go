package cmdline

import (
	"io"
	"slices"
	"strings"

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
// command prints the help of the program and exits with 0.
func NewHelp(h *Help) *cobra.Command {
	topics := []Topic{{Name: flagsName, Short: "All flags of a command, or of all commands"}}
	help := &cobra.Command{Use: "help [COMMAND | flags [COMMAND]]", Short: "Help on a command"}
	if len(h.Topics) > 0 {
		list := Topic{Name: topicsName, Short: "A list of the topics", Text: "The help has these topics:"}
		help.Use, help.Short = "help [COMMAND | TOPIC | flags [COMMAND]]", "Help on a command or a topic"
		topics = slices.Concat(h.Topics, topics)
		for _, t := range topics {
			list.Entries = append(list.Entries, Entry{t.Name, t.Short})
		}
		topics = append(topics, list)
	}
	help.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := h.find(cmd.Root(), args, topics)
		if err == nil {
			_, err = io.WriteString(cmd.OutOrStdout(), text)
		}
		return err
	}
	help.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		offer := func(name, short string) {
			if strings.HasPrefix(name, prefix) {
				names = append(names, cobra.CompletionWithDesc(name, short))
			}
		}
		command := args
		if len(args) > 0 && args[0] == flagsName {
			command = args[1:]
		}
		if c, rest, err := cmd.Root().Find(command); err == nil && len(rest) == 0 {
			for _, below := range c.Commands() {
				if below.IsAvailableCommand() {
					offer(below.Name(), below.Short)
				}
			}
		}
		for _, t := range topics {
			if len(args) == 0 {
				offer(t.Name, t.Short)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return help
}

// find returns the text for the arguments of the help command.
func (h *Help) find(root *cobra.Command, args []string, topics []Topic) (string, error) {
	text, command := h.Command, args
	if len(args) > 0 && args[0] == flagsName {
		text, command = h.Flags, args[1:]
	}
	c, rest, err := root.Find(command)
	if err != nil {
		return "", err
	}
	if len(rest) == 0 {
		c.InitDefaultHelpFlag() // so that the help lists --help
		return text(c), nil
	}
	var names []string
	for _, t := range topics {
		if names = append(names, t.Name); t.Name == rest[0] && len(args) == 1 {
			return h.Topic(t), nil
		}
	}
	if near := Nearest(rest[0], names); near != "" && !c.HasParent() && len(command) == len(args) {
		return "", exit.Usagef("unknown command or topic %q, did you mean %s help %s?", rest[0], process.Words(), near)
	}
	return "", unknownCommand(c, rest[0])
}
