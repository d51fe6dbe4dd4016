package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"time"
)

// logFile is the file of --log-file. The zero value logs nothing.
type logFile struct {
	log   *slog.Logger // nil without a file
	file  *os.File
	lines *lineQueue // in front of file, so that a slow disk does not block uploads
}

// openLog opens the file at path for appending. A new file is readable only by its
// owner, because it contains names of files. Lines below level are left out.
func (l *logFile) openLog(path string, level slog.Level) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	l.file, l.lines = f, newLineQueue(f)
	l.log = slog.New(slog.NewTextHandler(l.lines, &slog.HandlerOptions{Level: level}))
	return nil
}

func (l *logFile) logInfo(text string) {
	if l.log != nil {
		l.log.Info(text)
	}
}

func (l *logFile) logWarning(text string) {
	if l.log != nil {
		l.log.Warn(text)
	}
}

func (l *logFile) logError(text string, attrs ...slog.Attr) {
	if l.log != nil {
		l.log.LogAttrs(context.Background(), slog.LevelError, text, attrs...)
	}
}

// logStart writes the first line of a run.
func (l *logFile) logStart(commandLine string) {
	if l.log != nil {
		l.log.Info("run started", "command", commandLine, "pid", os.Getpid(), "version", version().Version)
	}
}

// logEnd writes the last line of a run.
func (l *logFile) logEnd(code int, elapsed time.Duration) {
	if l.log != nil {
		l.log.Info("run ended", "exit_code", code, "took", elapsed)
	}
}

// closeLog waits until the log is written, and returns the first error.
func (l *logFile) closeLog() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.lines.flush(), l.file.Close())
}
