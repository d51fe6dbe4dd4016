package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"gcsup/internal/cli/cmdline"
	"gcsup/internal/cli/configfile"
	"gcsup/internal/cli/exit"
	"gcsup/internal/cli/process"
)

// configFlag is the flag of every command whose flags can have values in a file.
const configFlag = "config"

// notInConfig has the flags that can have no value in a file. Backups and repositories often
// contain such files.
var notInConfig = configfile.Refused{
	"additional-headers": "its value may be a secret, which does not belong in this file: set " + cmdline.Variable("additional-headers"),
	"name":               "it is the name of one file",
	"source":             "it is the source of one upload",
	"restart":            "each run would discard what the one before has stored",
	"all":                "it selects the saved uploads of one run",
	"older-than":         "it selects the saved uploads of one run",
	"help":               "it has no default",
	configFlag:           "a file cannot name another one",
}

// addConfig adds --config to the commands at cmd and below it that have flags for a file.
func addConfig(cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		addConfig(c)
	}
	configurable := false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, refused := notInConfig[f.Name]
		configurable = configurable || !refused
	})
	if configurable && !cmdline.IsGroup(cmd) {
		cmd.Flags().String(configFlag, "", "read the defaults of flags from `FILE`; --config= reads none (default: gcsup/config.yaml in $XDG_CONFIG_HOME or ~/.config)")
	}
}

// configCommands returns the commands with --config at cmd and below it.
func configCommands(cmd *cobra.Command) (commands []configfile.Command) {
	for _, c := range cmd.Commands() {
		commands = append(commands, configCommands(c)...)
	}
	if cmd.Flags().Lookup(configFlag) != nil {
		commands = append(commands, configfile.Command{Name: commandName(cmd), Flags: cmd.Flags()})
	}
	return commands
}

// commandName returns the words of a command after the name of the program.
func commandName(cmd *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
}

// setDefaults sets the flags of cmd that are not on the command line to the values of the environment,
// or else of the configuration file, which it returns.
func setDefaults(cmd *cobra.Command) (*configfile.File, error) {
	file, err := readConfig(cmd)
	if err != nil {
		return file, err
	}
	return file, envRules.Set(cmd, file.Layers(commandName(cmd))...)
}

// readConfig reads the file of --config or its variable, else the user's file if it exists.
func readConfig(cmd *cobra.Command) (*configfile.File, error) {
	flag := cmd.Flags().Lookup(configFlag)
	if flag == nil {
		return configfile.None("the command reads none"), nil
	}
	path, named := flag.Value.String(), flag.Changed
	if !named {
		path = os.Getenv(cmdline.Variable(configFlag))
		named = path != ""
	}
	switch {
	case named && path == "":
		return configfile.None("--config is empty"), nil
	case path == os.DevNull:
		return configfile.None(path + " is empty"), nil
	case !named:
		var err error
		if path, err = process.ConfigFile(); err != nil {
			return configfile.None("there is no default: " + err.Error()), nil
		}
	}
	data, risk, err := configfile.Read(path)
	switch _, missing := os.Lstat(path); {
	case errors.Is(missing, fs.ErrNotExist) && !named:
		return configfile.None(path + " does not exist"), nil
	case !named && (errors.Is(missing, fs.ErrPermission) || errors.Is(missing, syscall.ENOTDIR)):
		// A service may have a home directory that it cannot read, or none. A file that exists and
		// cannot be read is an error.
		return configfile.None("it cannot be read: " + missing.Error()), nil
	case err != nil:
		return nil, exit.WithKind(fmt.Errorf("configuration file: %w; --config= reads none", err), exit.ErrSource)
	case risk != nil && !named: // a user who names a file has chosen it
		return nil, exit.WithKind(fmt.Errorf("configuration file: %w; --config=FILE reads it nevertheless, and --config= none", risk), exit.ErrConfig)
	}
	checked, _ := newRoot(stdio{strings.NewReader(""), io.Discard, io.Discard}) // whose flags may change
	file, err := configfile.Parse(path, data, configCommands(checked), notInConfig)
	file.Risk = risk
	return file, err
}

// configKey is the key of the configuration file in the context of a command.
type configKey struct{}

// withConfig returns the context of a command that has read a file.
func withConfig(ctx context.Context, file *configfile.File) context.Context {
	return context.WithValue(ctx, configKey{}, file)
}

// aboutConfig describes the configuration file of a command, and which of its values the command
// uses. read reports whether there is one.
func aboutConfig(cmd *cobra.Command) (text string, read bool) {
	file, _ := cmd.Context().Value(configKey{}).(*configfile.File)
	switch {
	case file == nil:
		return "none was read", false
	case file.Path == "":
		return "none was read: " + file.Why, false
	}
	var set, replaced []string
	for _, layer := range file.Layers(commandName(cmd)) {
		for name := range layer {
			switch f := cmd.Flags().Lookup(name); {
			case f == nil: // of other commands
			case cmdline.FromFile(f):
				set = append(set, "--"+name)
			default:
				replaced = append(replaced, "--"+name)
			}
		}
	}
	parts := []string{process.Absolute(file.Path) + ", with " + file.Contents()}
	for _, list := range []struct {
		what  string
		names []string
	}{{"here it sets", set}, {"the command line or the environment has priority over", replaced}} {
		if len(list.names) > 0 {
			slices.Sort(list.names)
			parts = append(parts, list.what+" "+strings.Join(slices.Compact(list.names), ", "))
		}
	}
	return strings.Join(parts, "; "), true
}
