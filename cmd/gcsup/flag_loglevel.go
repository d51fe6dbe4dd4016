package main

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// logLevel is --log-level: the least level of the lines of --log-file.
type logLevel struct{ level slog.Level }

var logLevels = []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

func (l *logLevel) add(fs *pflag.FlagSet) {
	l.level = slog.LevelDebug
	fs.Var(l, "log-level", "least level of the lines in --log-file: "+strings.Join(l.Values(), ", "))
}

// Values returns the valid values.
func (*logLevel) Values() (names []string) {
	for _, level := range logLevels {
		names = append(names, strings.ToLower(level.String()))
	}
	return names
}

func (l *logLevel) Type() string   { return "LEVEL" }
func (l *logLevel) String() string { return strings.ToLower(l.level.String()) }

func (l *logLevel) Set(text string) error {
	i := slices.Index(l.Values(), text)
	if i < 0 {
		return errors.New("want " + strings.Join(l.Values(), ", "))
	}
	l.level = logLevels[i]
	return nil
}
