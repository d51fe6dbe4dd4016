package result

import "gcsup/upload"

// Progress is how far an upload is, for people.
type Progress struct{ Size, Sent, Arrived, Committed int64 }

// ProgressOf returns the progress of an event. That of a file that is compressed is in
// bytes of the file: the size of the object is not known before the end.
func ProgressOf(e upload.Event) Progress {
	if s := e.Source; s != nil {
		return Progress{s.Size, s.Sent, s.Arrived, s.Committed}
	}
	return Progress{e.Size, e.Sent, e.Arrived, e.Committed}
}
