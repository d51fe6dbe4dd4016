package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The types of a line.
const (
	held       = "ok"
	differs    = "differs"
	notChecked = "not_checked"
	notDeleted = "not_deleted"
	note       = "note"
	summary    = "summary"
)

// line is one fact. Fields that do not apply are empty.
type line struct {
	Type   string  `json:"type"`
	Name   string  `json:"name,omitempty"`   // of the case or the object
	Fact   string  `json:"fact,omitempty"`   // the expectation
	Seen   string  `json:"seen,omitempty"`   // may have several lines
	Source string  `json:"source,omitempty"` // of the fact
	Do     string  `json:"do,omitempty"`     // advice for the user
	Counts *counts `json:"counts,omitempty"`
}

type counts struct {
	Differs    int `json:"differs"`
	Held       int `json:"held"`
	NotChecked int `json:"not_checked"`
	NotDeleted int `json:"not_deleted"`
}

// report writes and counts lines, for people or as JSON.
type report struct {
	w    io.Writer
	json bool

	differs, held, notChecked, notDeleted int
	err                                   error // first write error
}

func (r *report) add(l line) {
	switch l.Type {
	case held:
		r.held++
	case differs:
		r.differs++
	case notChecked:
		r.notChecked++
	case notDeleted:
		r.notDeleted++
	}
	r.print(l)
}

func (r *report) note(format string, args ...any) {
	r.print(line{Type: note, Seen: fmt.Sprintf(format, args...)})
}

func (r *report) summary() {
	r.print(line{Type: summary, Counts: &counts{r.differs, r.held, r.notChecked, r.notDeleted}})
}

func (r *report) print(l line) {
	var err error
	if r.json {
		e := json.NewEncoder(r.w)
		e.SetEscapeHTML(false)
		err = e.Encode(l)
	} else {
		_, err = io.WriteString(r.w, l.text())
	}
	r.err = errors.Join(r.err, err)
}

// text returns l for people: one line, and three more for a difference.
func (l line) text() string {
	switch l.Type {
	case held:
		text := fmt.Sprintf("ok          %s: %s", l.Name, l.Fact)
		if l.Seen != "" {
			text += " (" + l.Seen + ")"
		}
		return text + "\n"
	case differs:
		seen := strings.ReplaceAll(strings.TrimSpace(l.Seen), "\n", "\n              ")
		return fmt.Sprintf("DIFFERS     %s\n    expected: %s\n    seen:     %s\n    source:   %s\n", l.Name, l.Fact, seen, l.Source)
	case notChecked:
		return fmt.Sprintf("NOT CHECKED %s: %s: %s\n", l.Name, l.Seen, l.Do)
	case notDeleted:
		return fmt.Sprintf("NOT DELETED %s: %s: %s\n", l.Name, l.Seen, l.Do)
	case summary:
		return fmt.Sprintf("%d differences, %d held, %d not checked, %d not deleted\n", l.Counts.Differs, l.Counts.Held, l.Counts.NotChecked, l.Counts.NotDeleted)
	default:
		return fmt.Sprintf("note        %s\n", l.Seen)
	}
}
