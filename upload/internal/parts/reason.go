package parts

// Reason is why a file is sent over one connection. [Plan.Choose] returns it as its error.
type Reason struct {
	Text       string // for events
	Unmeasured bool   // the rate of the first bytes decides, see [Link.Measure]
}

func (r Reason) Error() string { return r.Text }

// After returns the reason of a way to join the parts. before is that of an earlier way, or
// its Text is "".
func (r Reason) After(before Reason) Reason {
	if before.Text != "" && before.Text != r.Text {
		r.Text = before.Text + "; " + r.Text
	}
	return r
}
