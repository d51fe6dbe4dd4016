package tree

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const maxName = 1024 // bytes

// checkName returns an error if the service does not allow an object name, see
// https://cloud.google.com/storage/docs/objects#naming. It accepts the same names as
// session.Spec.Validate.
func checkName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case len(name) > maxName:
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrName, len(name), maxName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: %q is not valid UTF-8", ErrName, name)
	case strings.IndexByte(name, '\n') >= 0 || strings.IndexByte(name, '\r') >= 0:
		return fmt.Errorf("%w: %q has a line break", ErrName, name)
	case name == "." || name == "..", strings.HasPrefix(name, ".well-known/acme-challenge/"):
		return fmt.Errorf("%w: %q is reserved", ErrName, name)
	}
	return nil
}

// checkDir returns an error if the service allows no object name that starts
// with prefix, which ends in a slash.
func checkDir(prefix string) error {
	if len(prefix) >= maxName {
		return fmt.Errorf("%w: the directory alone has %d bytes, the limit of a name is %d", ErrName, len(prefix), maxName)
	}
	return checkName(prefix)
}

// join returns prefix and name with one slash between them.
func join(prefix, name string) string {
	if prefix == "" || strings.HasSuffix(prefix, "/") {
		return prefix + name
	}
	return prefix + "/" + name
}
