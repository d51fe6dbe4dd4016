package recorded

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// An archive is a Go module that contains recordings.
type archive struct {
	Module  string
	Version string
	Sum     string // as in go.sum, so that the recordings are always the same
	Root    string // the directory or file in the module
	Year    string // when they were recorded
}

var archives = []archive{
	{
		Module: "cloud.google.com/go/storage", Version: "v1.70.0", Sum: "h1:LQNHn0rRF94jVFfF3e416IzdQqIufa5GfF6HilQxb80=",
		Root: "storage.replay", Year: "2019",
	},
	{
		Module: "gocloud.dev", Version: "v0.47.0", Sum: "h1:qN4/0vtutn97f1X5ziisf3WXuaFL9AR0FIRnyJRYzgA=",
		Root: "blob/gcsblob/testdata", Year: "2026",
	},
}

// download returns the path of the archive's recordings in the module cache.
func (a archive) download() (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command("go", "mod", "download", "-json", a.Module+"@"+a.Version)
	cmd.Dir = os.TempDir() // outside of any module, so that no go.sum is changed
	cmd.Stdout, cmd.Stderr = &out, &errs
	runErr := cmd.Run()
	var got struct{ Dir, Sum, Error string }
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || runErr != nil || got.Error != "" {
		return "", fmt.Errorf("get %s@%s from the module proxy: %v %s %s", a.Module, a.Version, runErr, got.Error, errs.Bytes())
	}
	if got.Sum != a.Sum {
		return "", fmt.Errorf("%s@%s has the checksum %s, not %s", a.Module, a.Version, got.Sum, a.Sum)
	}
	return filepath.Join(got.Dir, filepath.FromSlash(a.Root)), nil
}

// A conversation is one recording: exchanges in order, with one state of the service.
type conversation struct {
	Name      string
	Year      string
	Exchanges []exchange
}

// An exchange is one recorded request and its reply.
type exchange struct {
	Method    string
	URL       string
	Header    http.Header
	MediaType string   // of the body; of its parts nothing is recorded
	Parts     [][]byte // more than one for multipart/related
	Reply     answer
	// Payer is the project that pays for a request of the bucket's owner. The service needs none; fakegcs
	// does not know who sends a request.
	Payer string
}

// An answer is a reply, recorded or of fakegcs.
type answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// conversations reads all recordings of the archive. Recordings of gRPC calls have another format and
// are left out.
func (a archive) conversations() ([]conversation, error) {
	root, err := a.download()
	if err != nil {
		return nil, err
	}
	var list []conversation
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.Contains(d.Name(), "GRPC") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".replay") {
			return nil
		}
		c, err := readConversation(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		c.Name, c.Year = strings.TrimSuffix(filepath.Base(a.Root), ".replay"), a.Year
		if rel, _ := filepath.Rel(root, path); rel != "." {
			c.Name = strings.TrimSuffix(filepath.ToSlash(rel), ".replay")
		}
		list = append(list, c)
		return nil
	})
	return list, err
}

// readConversation reads a file of https://pkg.go.dev/cloud.google.com/go/httpreplay.
func readConversation(path string) (conversation, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return conversation{}, err
	}
	var file struct {
		Version string
		Entries []struct {
			Request struct {
				Method, URL, MediaType string
				Header                 http.Header
				BodyParts              []string
			}
			Response struct {
				StatusCode int
				Header     http.Header
				Body       string
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return conversation{}, err
	}
	if file.Version != "0.2" {
		return conversation{}, fmt.Errorf("format %s, not 0.2", file.Version)
	}
	var c conversation
	for _, e := range file.Entries {
		x := exchange{Method: e.Request.Method, URL: e.Request.URL, Header: e.Request.Header, MediaType: e.Request.MediaType}
		for _, part := range e.Request.BodyParts {
			p, err := base64.StdEncoding.DecodeString(part)
			if err != nil {
				return conversation{}, err
			}
			x.Parts = append(x.Parts, p)
		}
		x.Reply = answer{Status: e.Response.StatusCode, Header: e.Response.Header}
		if x.Reply.Body, err = base64.StdEncoding.DecodeString(e.Response.Body); err != nil {
			return conversation{}, err
		}
		c.Exchanges = append(c.Exchanges, x)
	}
	return c, nil
}
