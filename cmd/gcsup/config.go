package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
	if configurable && !cmd.HasSubCommands() {
		cmd.Flags().String(configFlag, "", "read the defaults of flags from `FILE`; if empty, from none (default: gcsup/config.yaml in $XDG_CONFIG_HOME or ~/.config)")
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

// maxConfig is the largest file that is read.
const maxConfig = 1 << 20

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
	if named && path == "" {
		return configfile.None("--config is empty"), nil
	}
	if !named {
		var err error
		if path, err = process.ConfigFile(); err != nil {
			return configfile.None("there is no default: " + err.Error()), nil
		}
	}
	data, err := readUpTo(path, maxConfig)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !named:
		return configfile.None(path + " does not exist"), nil
	case !named && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)):
		// A service may have a home directory that it cannot read, or none.
		return configfile.None("it cannot be read: " + err.Error()), nil
	case err != nil:
		return nil, exit.WithKind(fmt.Errorf("configuration file: %w; --config= reads none", err), exit.ErrSource)
	}
	checked, _ := newRoot(stdio{strings.NewReader(""), io.Discard, io.Discard}) // whose flags may change
	return configfile.Parse(path, data, configCommands(checked), notInConfig)
}

// readUpTo returns the content of a file of at most that many bytes.
func readUpTo(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s: want at most %d bytes", path, most)
	}
	return data, err
}

// configKey is the key of the configuration file in the context of a command.
type configKey struct{}

// withConfig returns the context of a command that has read a file.
func withConfig(ctx context.Context, file *configfile.File) context.Context {
	return context.WithValue(ctx, configKey{}, file)
}

// aboutConfig describes the configuration file of a command, and the flags that have their values from
// it. read reports whether there is one.
func aboutConfig(ctx context.Context, flags *pflag.FlagSet) (text string, read bool) {
	file, _ := ctx.Value(configKey{}).(*configfile.File)
	switch {
	case file == nil:
		return "none was read", false
	case file.Path == "":
		return "none was read: " + file.Why, false
	}
	var set []string
	flags.VisitAll(func(f *pflag.Flag) {
		if cmdline.FromFile(f) {
			set = append(set, "--"+f.Name)
		}
	})
	if len(set) == 0 {
		return file.Path + ", which sets no flag of this command", true
	}
	return file.Path + ", which sets " + strings.Join(set, ", "), true
}
