package exit

import (
	"slices"
	"strings"

	"gcsup/internal/decide"
	"gcsup/session"
)

// Text returns the text of err for people. It leaves out the operations of requests, such as
// "insert: ", which are fields in JSON and in the log. It separates the errors of errors.Join by
// semicolons.
func Text(err error) string { return Without(err.Error(), err) }

// Without leaves out of text, which contains the text of err, the operations in err. err may
// be nil.
func Without(text string, err error) string {
	for _, joined := range joins(err) {
		text = strings.Replace(text, strings.Join(joined, "\n"), strings.Join(joined, "; "), 1)
	}
	for _, failed := range requests(err) {
		text = strings.ReplaceAll(text, failed.Error(), decide.Text(failed))
	}
	return text
}

// joins returns the texts of the errors of each errors.Join that err wraps, the outer ones first.
func joins(err error) (all [][]string) {
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return joins(err.Unwrap())
	case interface{ Unwrap() []error }:
		var texts []string
		for _, inner := range err.Unwrap() {
			texts = append(texts, inner.Error())
			all = append(all, joins(inner)...)
		}
		if strings.Join(texts, "\n") == err.(error).Error() {
			all = slices.Insert(all, 0, texts)
		}
	}
	return all
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
