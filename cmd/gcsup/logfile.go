package main

import (
	"errors"
	"log/slog"
	"os"
)

// logFile is the file of --log-file. The zero value logs nothing.
type logFile struct {
	log   *slog.Logger // nil without a file
	file  *os.File
	lines *lineQueue // in front of file, so that a slow disk does not block uploads
}

// openLog opens the file at path for appending. A new file is readable only by its
// owner, because it contains names of files.
func (l *logFile) openLog(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	l.file, l.lines = f, newLineQueue(f)
	l.log = slog.New(slog.NewTextHandler(l.lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return nil
}

func (l *logFile) logInfo(text string) {
	if l.log != nil {
		l.log.Info(text)
	}
}

func (l *logFile) logError(text string) {
	if l.log != nil {
		l.log.Error(text)
	}
}

// closeLog waits until the log is written, and returns the first error.
func (l *logFile) closeLog() error {
	if l.file == nil {
		return nil
	}
	return errors.Join(l.lines.flush(), l.file.Close())
}
