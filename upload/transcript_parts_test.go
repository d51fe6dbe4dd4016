package upload_test

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"gcsup/chunk"
	"gcsup/fakegcs"
	"gcsup/fakegcs/faults"
	"gcsup/internal/multipart"
	"gcsup/session"
	"gcsup/upload"
)

// Documentation of the service's side of the conversations about parts.
const (
	docMultipart = "https://cloud.google.com/storage/docs/multipart-uploads"
	docXML       = "https://cloud.google.com/storage/docs/xml-api/"
)

// partsTranscripts are uploads of files in parts. The service answers after 10 ms, as a distant
// one does, and the client knows from an earlier file that a single connection is slow.
var partsTranscripts = []transcript{
	{
		name: "21-parts-by-multipart",
		about: `A file in three parts of a multipart upload. The client looks at the destination first, so that
it can recognize the object that it makes. Each part has its CRC32C. Before the completion the
client compares the list of the parts with what it sent. The reply to the completion does not
describe the object, so the client reads its metadata.`,
		url:  docMultipart,
		opts: farAway(),
		run:  func(s *scribe) { s.upload(random(multipartLarge), upload.Spec{}, multipartParts) },
	},
	{
		name: "22-parts-by-multipart-in-a-second-process",
		about: `The first process is killed in the middle of the second part. Its store has the address of the
multipart upload, and the ETag of the first part. The second process asks which parts the service
has. The first part is there, with the same size and ETag, and is not sent again. The service
keeps a part as a whole or not at all, so the second part is sent from its beginning.`,
		url:  docXML + "get-object-multipart",
		opts: farAway(),
		run:  func(s *scribe) { s.killed(random(twoParts), faults.OpPartsPut, multipartParts) },
	},
	{
		name: "23-lost-reply-to-a-completion",
		about: `The reply to the completion is lost. The object may exist or not. The client does not complete
again before it has looked at the destination. The object there has the size and the CRC32C of the
file, and was made after the upload started. Then the client reads the metadata, as after every
completion.`,
		url:  docXML + "post-object-complete",
		opts: farAway(faults.Fault{Match: faults.Match{Op: faults.OpPartsComplete}, Do: faults.Action{Effect: faults.EffectLoseReply}}),
		run:  func(s *scribe) { s.upload(random(twoParts), upload.Spec{}, multipartParts) },
	},
	{
		name: "24-damaged-part-of-a-multipart-upload",
		about: `A bit of the second part changes on the way. The service compares the part with its CRC32C, and
refuses it. The client waits and sends this part again. The first part stays at the service.`,
		url:  docXML + "put-object-multipart",
		opts: farAway(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Skip: 1, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}}),
		run:  func(s *scribe) { s.upload(random(twoParts), upload.Spec{}, multipartParts) },
	},
	{
		name: "25-parts-by-compose-in-a-second-process",
		about: `The first process is killed in the middle of the second part. Its store has the generation of the
first temporary object, and the session of the second part. The second process asks what that
session holds, sends the rest of the part, and composes. It sends no byte of the first part. The
bucket has no soft delete, so the client deletes the parts after the compose.`,
		url:  docCompose,
		opts: farAway(),
		run:  func(s *scribe) { s.killed(random(6*q), faults.OpPut, composeParts) },
	},
	{
		name: "26-lost-reply-to-a-compose",
		about: `The reply to the compose is lost. The object may exist or not. The client looks at the
destination before it composes again. The object there has the size and the CRC32C of the file,
and was composed from two parts after the upload started: the compose succeeded. The parts are
deleted only now.`,
		url:  docCompose,
		opts: farAway(faults.Fault{Match: faults.Match{Op: faults.OpCompose}, Do: faults.Action{Effect: faults.EffectLoseReply}}),
		run:  func(s *scribe) { s.upload(random(6*q), upload.Spec{}, composeParts) },
	},
	{
		name: "27-damaged-part-of-a-compose",
		about: `A bit of the second part changes on the way. The last request of a part has the CRC32C of the
part. The service compares it, and makes no temporary object. Committed bytes of a session cannot
be replaced, so the client sends this part again, in a new session. The first part stays.`,
		url:  docValidation,
		opts: farAway(faults.Fault{Match: faults.Match{Op: faults.OpPut}, Skip: 1, Do: faults.Action{Effect: faults.EffectCorrupt, Bytes: 1}}),
		run:  func(s *scribe) { s.upload(random(6*q), upload.Spec{}, composeParts) },
	},
	{
		name: "28-cancel-that-is-refused",
		about: `An upload in parts is canceled, but the service refuses to abort it. Its parts are still stored,
and they cost money. The client therefore keeps the saved upload, and lists it as to be removed.
When the permission has been granted, prune asks for the parts, aborts the multipart upload, and
deletes the saved upload.`,
		url:  docXML + "delete-multipart",
		opts: farAway(faults.Fault{Match: faults.Match{Op: faults.OpPartsAbort}, Do: faults.Action{Effect: faults.EffectStatus, Status: 403, Reason: "forbidden"}}),
		run:  refuseCancel,
	},
	{
		name: "35-stream-in-parts",
		about: `A stream that is longer than its first window is sent in the parts of a multipart upload. A
part is in memory until the service has it. The number of parts is not known before the stream ends, so
that they may need another multipart upload: this one is to a temporary object, which is composed. The
client asks first whether the bucket allows that. Before its first part the upload is saved as to be
removed.`,
		url:  docMultipart,
		opts: farAway(),
		run: func(s *scribe) {
			s.streamInParts(pieces(data(streamTwoParts)), nil)
			s.unrecorded(func() { s.w.wantOnlyObject(data(streamTwoParts)) })
		},
	},
	{
		name: "36-stream-in-parts-whose-reader-fails",
		about: `The reader of a stream fails when a part is stored. The client aborts the multipart upload, which
would never expire, and the object is not made.`,
		url:  docXML + "delete-multipart",
		opts: farAway(),
		run: func(s *scribe) {
			s.streamInParts(io.MultiReader(pieces(data(streamTwoParts-1)), breaking{}), chunk.ErrRead)
			s.w.wantSaved(0)
			s.unrecorded(s.w.wantNoUploads)
		},
	},
	{
		name: "37-stream-in-parts-in-a-killed-process",
		about: `The first process is killed in the middle of the second part. The rest of its stream is lost. The
saved upload has only what the removal needs. The second process prunes: it aborts the multipart upload
of the first one, and looks whether a request that it does not know of has completed it.`,
		url:  docXML + "delete-multipart",
		opts: farAway(),
		run:  killedStream,
	},
	{
		name: "38-stream-in-parts-resumed-from-its-spool",
		about: `A stream in a spool is sent in the parts of one multipart upload to the object. The first process is
killed in the middle of the second part, after its input has ended. Before the end was recorded, the size of each part
was saved. The second process has the bytes: it asks which parts the service has, sends the others, and compares the
CRC32C of all parts with that of the bytes that were read, before it completes the object.`,
		url:  docMultipart,
		opts: farAway(),
		run:  resumedSpool,
	},
	{
		name: "39-compressed-file-in-parts-in-a-second-process",
		about: `A compressed file is sent in the parts of one multipart upload, as a stream: its compressed size is
not known. The size of each part is saved before the part is sent. The first process is killed in the middle of the
second part. The second process compresses the file again from its beginning, in parts of the saved sizes. The first
part has the CRC32C that was saved, and the service has it. Only the others are sent.`,
		url:  docMultipart,
		opts: farAway(),
		run:  killedZipped,
	},
}

// breaking is a reader that fails after a second.
type breaking struct{}

func (breaking) Read([]byte) (int, error) {
	time.Sleep(time.Second)
	return 0, errors.New("the pipe broke")
}

// streamTwoParts is the size of a stream that streamInParts sends in two parts.
const streamTwoParts = partedWindow + multipart.MinPart

// streamInParts uploads a stream with Parts.Auto.
func (s *scribe) streamInParts(r io.Reader, want error) {
	up := s.uploader(autoStreams, func(o *upload.Options) { o.Window = int(partedWindow) })
	_, err := up.Reader(s.w.t.Context(), &pausing{r, partedWindow + 1}, spec)
	s.end(err, want)
}

// pausing is a reader that pauses after n bytes, so that its stream does not seem to be short.
type pausing struct {
	io.Reader
	n int64
}

func (p *pausing) Read(b []byte) (int, error) {
	if p.n == 0 {
		time.Sleep(300 * time.Millisecond)
	} else if p.n > 0 {
		b = b[:min(p.n, int64(len(b)))]
	}
	n, err := p.Reader.Read(b)
	if p.n -= int64(n); p.n < 0 {
		p.n = -1
	}
	return n, err
}

// killedInPartTwo returns the context and the store of a process that is killed when the service is stuck in the second
// part.
func (s *scribe) killedInPartTwo() (context.Context, *process) {
	s.note("the first process")
	stuck := faults.Action{Effect: faults.EffectStallBody, Bytes: q + 1000}
	s.w.addFaults(faults.Fault{Match: faults.Match{Op: faults.OpPartsPut}, Skip: 1, Do: stuck})
	ctx, die := context.WithCancel(s.w.t.Context())
	p := &process{Store: s.w.store}
	time.AfterFunc(59*time.Second, func() {
		p.dead.Store(true)
		s.dead.Store(true)
		die()
	})
	return ctx, p
}

// killedStream kills a process that sends a stream when the service is stuck in the second part.
func killedStream(s *scribe) {
	ctx, p := s.killedInPartTwo()
	up := s.uploader(autoStreams, func(o *upload.Options) { o.Window, o.Store = int(partedWindow), p })
	_, _ = up.Reader(ctx, &pausing{pieces(data(streamTwoParts)), partedWindow + 1}, spec)
	s.dead.Store(false)
	s.w.wantSaved(1)
	s.note("the second process")
	for p, err := range s.uploader().Prune(s.w.t.Context(), nil) {
		if err != nil || !p.Deleted {
			s.w.t.Errorf("%+v, %v", p, err)
		}
	}
	s.w.wantSaved(0)
	s.unrecorded(s.w.wantNoUploads)
}

// resumedSpool kills a process that sends a stream from a spool when the service is stuck in the second part, and
// resumes the stream.
func resumedSpool(s *scribe) {
	ctx, p := s.killedInPartTwo()
	with := []func(*upload.Options){autoStreams, s.w.spooling(0), func(o *upload.Options) { o.Window = int(partedWindow) }}
	res, _ := s.uploader(append(with, func(o *upload.Options) { o.Store = p })...).Reader(ctx, steady(data(streamTwoParts)), spec)
	s.dead.Store(false)
	s.w.wantSaved(1)
	s.note("the second process")
	_, err := s.uploader(with...).Resume(s.w.t.Context(), res.ID)
	s.end(err, nil)
	s.unrecorded(func() { s.w.wantOnlyObject(data(streamTwoParts)) })
	s.w.wantNoSpool()
}

// killedZipped kills a process that sends a compressed file in two parts, one after the other because both would be at
// risk, and sends it again.
func killedZipped(s *scribe) {
	content := data(17 * mib)
	path := s.w.file(content)
	parts := func(o *upload.Options) { o.Window, o.Parallel = int(12*mib), &upload.Parts{Connections: 2} }
	s.kill(path, zipped, faults.OpPartsPut, parts)
	s.note("the second process")
	s.file(path, zipped, nil, parts)
	s.w.wantSaved(0)
	s.unrecorded(func() { s.w.wantZipped(content) })
}

// farAway returns options for a service that answers after 10 ms.
func farAway(plan ...faults.Fault) fakegcs.Options {
	return fakegcs.Options{Latency: 10 * time.Millisecond, Faults: plan}
}

// twoParts is the size of a file that multipartParts sends in two parts.
const twoParts = 2 * multipart.MinPart

// multipartParts sends a file in parts of 5 MiB of a multipart upload.
func multipartParts(o *upload.Options) {
	o.Parallel = upload.AutoPartsFrom(0, multipart.MinPart, multipart.MinPart).Joined(upload.ByMultipart)
}

// composeParts sends a file of 1.5 MiB as two objects, each in two requests, and composes them.
func composeParts(o *upload.Options) {
	o.Parallel = upload.AutoPartsFrom(0, q, 3*q).Joined(upload.ByCompose)
	inParts(o)
}

// refuseCancel interrupts an upload, cancels it, and prunes it later.
func refuseCancel(s *scribe) {
	id := s.kill(s.w.file(random(twoParts)), spec, faults.OpPartsPut, multipartParts)
	s.note("gcsup uploads cancel")
	up := s.uploader(multipartParts)
	s.end(up.Cancel(s.w.t.Context(), id), session.ErrPermission)
	s.w.wantSaved(1)
	for saved, err := range up.Saved(s.w.t.Context()) {
		if err != nil || !saved.ToRemove {
			s.w.t.Errorf("%+v, %v", saved, err)
		}
	}
	s.note("gcsup uploads list: to be removed")
	s.note("gcsup uploads prune")
	for pruned, err := range up.Prune(s.w.t.Context(), nil) {
		if err != nil || !pruned.Deleted {
			s.w.t.Errorf("%+v, %v", pruned, err)
		}
	}
	s.w.wantSaved(0)
	s.note("done: the service has no part, and the upload is not saved")
}

// kill ends a process that uploads a file when the service is stuck in the second part. The
// process can save nothing at its end. kill returns the ID of the upload.
func (s *scribe) kill(path string, spec upload.Spec, op faults.Op, with ...func(*upload.Options)) string {
	s.w.t.Helper()
	s.note("the first process")
	s.w.addFaults(faults.Fault{Match: faults.Match{Op: op}, Skip: 1, Do: faults.Action{Effect: faults.EffectStallBody, Bytes: q + 1000}})
	p := &process{Store: s.w.store}
	time.AfterFunc(59*time.Second, func() { // before the end of timeOut
		p.dead.Store(true)
		s.dead.Store(true)
	})
	defer s.dead.Store(false)
	return s.w.timeOut(path, spec, slices.Concat(with, []func(*upload.Options){s.listen, func(o *upload.Options) { o.Store = p }})...).ID
}

// killed uploads content in two processes, of which kill ends the first.
func (s *scribe) killed(content []byte, op faults.Op, with ...func(*upload.Options)) {
	path := s.w.file(content)
	s.kill(path, spec, op, with...)
	s.note("the second process")
	s.file(path, spec, nil, with...)
	s.w.wantObject("obj", content)
	s.w.wantSaved(0)
	s.unrecorded(s.w.wantNoLeftovers)
}

// isXML reports whether a request is one of the XML API.
func isXML(req *http.Request) bool {
	return !strings.HasPrefix(req.URL.Path, "/storage/") && !strings.HasPrefix(req.URL.Path, "/upload/")
}

// xmlSummary returns an XML document on one line, as "Part{PartNumber: 1, Size: 5}". ok is
// false if the text is not XML.
func (s *scribe) xmlSummary(text []byte) (summary string, ok bool) {
	if !bytes.HasPrefix(text, []byte("<?xml")) && !bytes.HasPrefix(text, []byte("<Complete")) {
		return "", false
	}
	var root element
	if err := xml.Unmarshal(text, &root); err != nil {
		s.w.t.Errorf("%v: %s", err, text)
	}
	return s.scrub(root.words(s)), true
}

// element is an XML element.
type element struct {
	XMLName  xml.Name
	Text     string    `xml:",chardata"`
	Elements []element `xml:",any"`
}

// noise are the elements that a client does not need.
var noise = []string{"Bucket", "Key", "Location", "StorageClass", "PartNumberMarker", "NextPartNumberMarker", "MaxParts", "LastModified"}

func (e element) words(s *scribe) string {
	switch name := e.XMLName.Local; {
	case name == "UploadId":
		return name + ": " + numbered("multipart upload", &s.multiparts, e.Text)
	case len(e.Elements) == 0:
		return name + ": " + e.Text
	}
	var list []string
	for _, child := range e.Elements {
		if !slices.Contains(noise, child.XMLName.Local) {
			list = append(list, child.words(s))
		}
	}
	return fmt.Sprintf("%s{%s}", e.XMLName.Local, strings.Join(list, ", "))
}
