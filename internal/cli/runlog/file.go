// Package runlog writes the log of a run: the file of --log-file, and the lines of --verbose. A Queue keeps a
// reader that stops from delaying the program.
package runlog

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"
)

// File is the file of --log-file. The zero value logs nothing.
type File struct {
	log   *slog.Logger // nil without a file
	file  *os.File
	lines *Queue // in front of file, so that a slow disk does not block uploads
}

// Open opens the file at path for appending. A new file is readable only by its
// owner, because it contains names of files. Lines below level are left out.
func (l *File) Open(path string, level slog.Level) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	l.file, l.lines = f, NewQueue(f)
	l.log = slog.New(slog.NewTextHandler(l.lines, &slog.HandlerOptions{Level: level}))
	return nil
}

// Handler returns what writes records to the file, or nil if there is none.
func (l *File) Handler() slog.Handler {
	if l.log == nil {
		return nil
	}
	return l.log.Handler()
}

// Write writes a line.
func (l *File) Write(level slog.Level, text string, attrs ...slog.Attr) {
	if l.log != nil {
		l.log.LogAttrs(context.Background(), level, text, attrs...)
	}
}

// Start writes the first line of a run.
func (l *File) Start(commandLine, version string) {
	if l.log != nil {
		l.log.Info("run started", "command", commandLine, "pid", os.Getpid(), "version", version)
	}
}

// End writes the last line of a run.
func (l *File) End(code int, elapsed time.Duration) {
	if l.log != nil {
		l.log.Info("run ended", "exit_code", code, "took", elapsed)
	}
}

// Close waits until the log is written, and returns the first error.
func (l *File) Close() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.lines.Flush(), l.file.Close())
}
