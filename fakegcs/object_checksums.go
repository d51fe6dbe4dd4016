package fakegcs

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
)

// checksums are the checksums that an uploader declares.
type checksums struct {
	crc *CRC32C
	md5 []byte
}

// addHeader adds the checksums of the headers X-Goog-Hash and Content-MD5.
func (c *checksums) addHeader(h http.Header) *apiError {
	for _, line := range h.Values("X-Goog-Hash") {
		for part := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
			switch name {
			case "crc32c":
				crc := new(CRC32C)
				if err := crc.UnmarshalText([]byte(value)); err != nil {
					return invalid("Invalid X-Goog-Hash header: %v", err)
				}
				c.crc = crc
			case "md5":
				if err := c.setMD5(value); err != nil {
					return err
				}
			}
		}
	}
	if v := h.Get("Content-Md5"); v != "" {
		return c.setMD5(v)
	}
	return nil
}

func (c *checksums) setMD5(value string) *apiError {
	sum, err := base64.StdEncoding.DecodeString(value)
	if err != nil || len(sum) != 16 {
		return invalid("Invalid MD5 '%s': it is not the base64 of 16 bytes.", value)
	}
	c.md5 = sum
	return nil
}

// check compares the declared checksums with those of o.
func (c checksums) check(o *Object) *apiError {
	if c.crc != nil && *c.crc != o.CRC32C {
		return refuse(http.StatusBadRequest, "crcMismatch", `Provided CRC32C "%s" doesn't match calculated CRC32C "%s".`, *c.crc, o.CRC32C)
	}
	if c.md5 == nil {
		return nil
	}
	if o.MD5 == nil {
		return errUnimplemented("checking an MD5 with Options.NoMD5")
	}
	if !bytes.Equal(c.md5, o.MD5) {
		return refuse(http.StatusBadRequest, "badDigest", `Provided MD5 hash "%s" doesn't match calculated MD5 hash "%s".`,
			base64.StdEncoding.EncodeToString(c.md5), base64.StdEncoding.EncodeToString(o.MD5))
	}
	return nil
}
