package runlog

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
)

// Exchange is the library's line for an exchange.
type Exchange struct {
	Took       time.Duration
	Op, Object string
	Source     string // "" if it is no file
	Part       int64  // 0 if the exchange is not about one part of a file
	Status     int64  // 0 if there was no reply
	From, Sent int64
	Committed  int64  // -1 if the reply does not report it
	Err, Next  string // Next is the decision that followed; "" if the upload ended
}

// ReadExchange returns the values in the line.
func ReadExchange(r slog.Record) Exchange {
	l := Exchange{Op: r.Message, Committed: -1}
	texts := map[string]*string{"object": &l.Object, "prefix": &l.Object, "source": &l.Source, "next": &l.Next}
	numbers := map[string]*int64{"part": &l.Part, "status": &l.Status, "from": &l.From, "sent": &l.Sent, "committed": &l.Committed}
	r.Attrs(func(a slog.Attr) bool {
		switch v := a.Value.Any().(type) {
		case string:
			if text := texts[a.Key]; text != nil {
				*text = v
			}
		case int64:
			if number := numbers[a.Key]; number != nil {
				*number = v
			}
		case time.Duration:
			l.Took = v
		case error:
			l.Err = v.Error()
		}
		return true
	})
	return l
}

// Request names the request.
func (l *Exchange) Request() string {
	if l.Part > 0 {
		return fmt.Sprintf("part %d: %s", l.Part, l.Op)
	}
	return l.Op
}

// Decision returns the decision that followed. It also has the error, which most decisions
// name.
func (l *Exchange) Decision() string {
	switch {
	case strings.Contains(l.Next, l.Err):
		return l.Next
	case l.Next == "":
		return l.Err
	}
	return l.Next + " (" + l.Err + ")"
}

// text returns the line for people:
//
//	photos/a.jpg put 0+4194304 → 503 5.2ms → wait, query: 503 Service Unavailable
func (l *Exchange) text() string {
	words := []string{readable.ShortenPath(process.Printable(l.Object), 24), l.Request()}
	if l.Sent > 0 {
		words = append(words, fmt.Sprintf("%d+%d", l.From, l.Sent))
	}
	words = append(words, "→", StatusText(l.Status))
	if l.Committed >= 0 {
		words = append(words, fmt.Sprintf("committed %d", l.Committed))
	}
	words = append(words, readable.Took(l.Took))
	if decision := l.Decision(); decision != "" {
		words = append(words, "→", decision)
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// StatusText returns an HTTP status, which is 0 if there was no reply.
func StatusText(status int64) string {
	if status == 0 {
		return "no reply"
	}
	return fmt.Sprint(status)
}

// lines is the handler of NewLines.
type lines struct{ w io.Writer }

// NewLines returns the handler of --verbose. It writes the library's lines for people.
func NewLines(w io.Writer) slog.Handler { return lines{w} }

// Enabled accepts the lines of exchanges.
func (v lines) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs returns v: the library adds no attributes to its logger.
func (v lines) WithAttrs([]slog.Attr) slog.Handler { return v }

// WithGroup returns v.
func (v lines) WithGroup(string) slog.Handler { return v }

// Handle writes a line.
func (v lines) Handle(_ context.Context, r slog.Record) error {
	text := ""
	if r.Level == slog.LevelDebug {
		l := ReadExchange(r)
		text = l.text()
	} else {
		text = r.Message
		r.Attrs(func(a slog.Attr) bool {
			text += fmt.Sprintf(" %s=%s", a.Key, cmp.Or(a.Value.String(), `""`))
			return true
		})
	}
	_, err := io.WriteString(v.w, r.Time.Format("15:04:05.000")+" "+process.Printable(text)+"\n")
	return err
}
