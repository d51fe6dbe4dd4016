package upload

// reason is why a file is sent over one connection. It is an error of what decides that.
type reason struct {
	kind reasonKind
	text string // for events
}

type reasonKind int

const (
	final      reasonKind = iota // nothing that this upload does changes it
	unmeasured                   // the service is near, and the speed of the first request decides
)

func (r reason) Error() string { return r.text }

// after returns the reason of a way to join the parts. before is that of an earlier way, or
// its text is "".
func (r reason) after(before reason) reason {
	if before.text != "" && before.text != r.text {
		r.text = before.text + "; " + r.text
	}
	return r
}
