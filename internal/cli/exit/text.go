package exit

import (
	"strings"

	"gcsup/session"
)

// Text returns the text of err for people. It leaves out the operations of requests, such as
// "insert: ", which are fields in JSON and in the log.
func Text(err error) string { return Without(err.Error(), err) }

// Without leaves out of text, which contains the text of err, the operations in err. err may
// be nil.
func Without(text string, err error) string {
	for _, failed := range requests(err) {
		text = strings.ReplaceAll(text, failed.Error(), failed.Text())
	}
	return text
}

// requests returns the failed requests that err wraps, the outer ones first.
func requests(err error) (failed []*session.Error) {
	if e, ok := err.(*session.Error); ok {
		failed = append(failed, e)
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return append(failed, requests(err.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, inner := range err.Unwrap() {
			failed = append(failed, requests(inner)...)
		}
	}
	return failed
}
