package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"gcsup/internal/cli/cells"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
)

// exchangeLine is the library's line for an exchange.
type exchangeLine struct {
	at, took   time.Duration // at is since the start of the run
	op, object string
	source     string // "" if it is no file
	part       int64  // 0 if the exchange is not about one part of a file
	status     int64  // 0 if there was no reply
	from, sent int64
	held       int64  // -1 if the reply does not report it
	err, next  string // next is the decision that followed; "" if the upload ended
}

// readExchange returns the values in the line.
func readExchange(r slog.Record) exchangeLine {
	l := exchangeLine{op: r.Message, held: -1}
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "object", "prefix":
			l.object = a.Value.String()
		case "source":
			l.source = a.Value.String()
		case "part":
			l.part = a.Value.Int64()
		case "status":
			l.status = a.Value.Int64()
		case "from":
			l.from = a.Value.Int64()
		case "sent":
			l.sent = a.Value.Int64()
		case "held":
			l.held = a.Value.Int64()
		case "took":
			l.took = a.Value.Duration()
		case "next":
			l.next = a.Value.String()
		case "err":
			if err, ok := a.Value.Any().(error); ok && err != nil {
				l.err = err.Error()
			}
		}
		return true
	})
	return l
}

// request names the request.
func (l *exchangeLine) request() string {
	if l.part > 0 {
		return fmt.Sprintf("part %d: %s", l.part, l.op)
	}
	return l.op
}

// decision returns the decision that followed. It also has the error, which most decisions
// name.
func (l *exchangeLine) decision() string {
	switch {
	case strings.Contains(l.next, l.err):
		return l.next
	case l.next == "":
		return l.err
	}
	return l.next + " (" + l.err + ")"
}

// text returns the line for people:
//
//	photos/a.jpg put 0+4194304 → 503 5.2ms → wait, query: 503 Service Unavailable
func (l *exchangeLine) text() string {
	words := []string{cells.ShortenPath(process.Printable(l.object), 24), l.request()}
	if l.sent > 0 {
		words = append(words, fmt.Sprintf("%d+%d", l.from, l.sent))
	}
	words = append(words, "→", statusText(l.status))
	if l.held >= 0 {
		words = append(words, fmt.Sprintf("held %d", l.held))
	}
	words = append(words, readable.Took(l.took))
	if decision := l.decision(); decision != "" {
		words = append(words, "→", process.Printable(decision))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// verboseLog is the slog.Handler of --verbose. It writes the library's lines for people.
type verboseLog struct{ w io.Writer }

// Enabled accepts the lines of exchanges.
func (v verboseLog) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs returns v: the library adds no attributes to its logger.
func (v verboseLog) WithAttrs([]slog.Attr) slog.Handler { return v }

// WithGroup returns v.
func (v verboseLog) WithGroup(string) slog.Handler { return v }

// Handle writes a line.
func (v verboseLog) Handle(_ context.Context, r slog.Record) error {
	text := ""
	if r.Level == slog.LevelDebug {
		l := readExchange(r)
		text = l.text()
	} else {
		text = r.Message
		r.Attrs(func(a slog.Attr) bool {
			text += fmt.Sprintf(" %s=%s", a.Key, cmp.Or(process.Printable(a.Value.String()), `""`))
			return true
		})
	}
	_, err := io.WriteString(v.w, r.Time.Format("15:04:05.000")+" "+text+"\n")
	return err
}
