package storetest

import "testing"

// Check is one check of the suite.
type Check struct {
	Name  string
	Needs Feature
	Run   func(t testing.TB, p Place)
}

// Checks returns all checks of the suite.
func Checks() []Check {
	var all []Check
	for _, c := range checks {
		all = append(all, Check{c.name, c.needs, func(t testing.TB, p Place) { newSubject(t, p).check(c) }})
	}
	return all
}

// Full returns saved uploads that have a value in every field.
var Full = full
