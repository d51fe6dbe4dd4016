// Package secret has the text of a session URI. Only the packages below session can import it. No other
// program can therefore read the text of a session.URI, or make one from a string.
package secret

// Text is the text of a session URI. The type session.URI has it as its underlying type, so that a package that
// can import this one can convert a Text to a URI.
type Text struct {
	// p is a pointer, because fmt prints unexported fields of an enclosing
	// struct without calling their methods. For a *string it prints the
	// address.
	p *string
}

// New returns the Text of a session URI.
func New(raw string) Text { return Text{&raw} }

// Reveal returns the text of a URI, or "" if it is zero. It is a function and no method of session.URI, so
// that only an import of this package gives access to it.
func Reveal[URI ~struct{ p *string }](u URI) string {
	if t := Text(u); t.p != nil {
		return *t.p
	}
	return ""
}
