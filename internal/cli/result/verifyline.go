package result

import (
	"gcsup/internal/checksum"
	"gcsup/session"
	"gcsup/upload"
	"gcsup/upload/tree"
)

// VerifyLine is the comparison of one file in JSON.
type VerifyLine struct {
	V            int        `json:"v"`
	Type         string     `json:"type"`
	Status       Status     `json:"status"`
	Source       *string    `json:"source"` // null for an object without a file
	Destination  string     `json:"destination"`
	Size         *int64     `json:"size"`
	Generation   *string    `json:"generation"`
	ObjectSize   *int64     `json:"object_size"`
	ObjectCRC32C *string    `json:"object_crc32c"`
	Recorded     string     `json:"recorded_generation,omitempty"` // with --manifest
	Entry        tree.Kind  `json:"entry,omitempty"`               // of a skipped entry of a directory that is not a file
	Error        *ErrorLine `json:"error"`
}

// NewVerifyLine returns the comparison of a file; res may be nil.
func NewVerifyLine(f File, status Status, res *upload.Result, err error) VerifyLine {
	l := VerifyLine{V: 1, Type: "verify", Status: status, Source: &f.Source, Destination: f.Destination, Entry: f.Entry}
	if res != nil {
		l.Size = Known(res.Size, res.Size >= 0)
	}
	if res != nil && res.Object != nil {
		l.Generation, l.ObjectSize = new(Generation(res.Object)), &res.Object.Size
		l.ObjectCRC32C = Known(checksum.Encode(res.Object.CRC32C), res.Object.HasCRC32C)
	}
	if err != nil {
		l.Error = NewErrorLine(err)
	}
	return l
}

// NewExtraLine returns the line of an object without a file.
func NewExtraLine(o *session.Object, err error) VerifyLine {
	return VerifyLine{V: 1, Type: "verify", Status: Extra, Destination: "gs://" + o.Bucket + "/" + o.Name, Generation: new(Generation(o)), ObjectSize: &o.Size, Error: NewErrorLine(err)}
}
