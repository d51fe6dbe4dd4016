package natsserver

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
)

// logger receives the log of a server of NATS. It reports warnings and errors, and notices that the
// disk is full.
type logger struct{ s *Server }

func (l *logger) Noticef(string, ...any) {}
func (l *logger) Debugf(string, ...any)  {}
func (l *logger) Tracef(string, ...any)  {}

func (l *logger) Warnf(format string, v ...any) { l.report(slog.LevelWarn, format, v) }

func (l *logger) Errorf(format string, v ...any) { l.report(slog.LevelError, format, v) }

// Fatalf records why the server cannot start. Start returns it.
func (l *logger) Fatalf(format string, v ...any) {
	err := startError{text: fmt.Sprintf(format, v...)}
	for _, arg := range v {
		if cause, ok := arg.(error); ok {
			err.cause = cause
		}
	}
	select {
	case l.s.fatal <- err:
	default:
	}
}

// startError is why the server cannot start.
type startError struct {
	text  string
	cause error // nil if it is not known
}

func (e startError) Error() string { return e.text }
func (e startError) Unwrap() error { return e.cause }

func (l *logger) report(level slog.Level, format string, v []any) {
	text := fmt.Sprintf(format, v...)
	if l.s.opts.Token != "" {
		text = strings.ReplaceAll(text, l.s.opts.Token, "[token]")
	}
	l.s.opts.Report(level, "NATS server: "+text)
	for _, arg := range v {
		if err, ok := arg.(error); ok && isFull(err) {
			select {
			case l.s.failed <- fmt.Errorf("%s: %w: %w", l.s.opts.Dir, ErrDiskFull, err):
			default: // the caller knows
			}
		}
	}
}

// isFull reports whether a write failed because the disk or a quota is full.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
