package result

import (
	"fmt"
	"time"

	"gcsup/internal/checksum"
	"gcsup/internal/cli/process"
	"gcsup/internal/cli/readable"
	"gcsup/upload"
)

// Text returns the line of a finished upload.
func Text(destination string, res *upload.Result) string {
	o := res.Object
	text := fmt.Sprintf("%s#%s  %s in %v", process.Printable(destination), Generation(o), readable.Bytes(o.Size), readable.Elapsed(res.Elapsed))
	if res.Elapsed > 0 && res.BytesSent > 0 {
		text += ", " + readable.Rate(float64(res.BytesSent)/res.Elapsed.Seconds())
	}
	if o.HasCRC32C {
		text += "  crc32c " + checksum.Encode(o.CRC32C)
	}
	if res.Unverified != nil {
		text += "  not verified"
	}
	if res.SourceRemoved {
		text += "  source removed"
	}
	if res.Resumed {
		text += "  resumed at " + readable.RoundedDown(res.ResumedFrom)
	}
	if res.Retries > 0 {
		text += "  " + readable.Plural(res.Retries, "retry", "retries")
		if res.Parts == nil { // parts wait at the same time, and the sum of their waits has no meaning
			text += fmt.Sprintf(", waited %v", readable.Elapsed(res.Waited))
		}
	}
	if res.Throttled >= time.Second {
		waited := ""
		if res.Parts == nil {
			waited = fmt.Sprintf("%v ", readable.Elapsed(res.Throttled))
		}
		text += "  waited " + waited + "for the request rate of the bucket"
	}
	if res.BytesResent > 0 {
		text += fmt.Sprintf(", %s sent again", readable.Bytes(res.BytesResent))
	}
	if p := res.Parts; p != nil && p.Rate > 0 {
		text += fmt.Sprintf("  %s: %s", readable.Plural(p.Connections, "connection", "connections"), readable.Rate(float64(p.Rate)))
		if p.RateOfOne > 0 && p.Connections > 1 {
			text += fmt.Sprintf(" (%s each)", readable.Rate(float64(p.RateOfOne)))
		}
	}
	return text
}
