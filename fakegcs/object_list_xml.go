package fakegcs

import (
	"encoding/xml"
	"net/http"
)

// Listings of the XML API,
// https://cloud.google.com/storage/docs/xml-api/get-bucket-list.

const (
	xmlNamespace = "http://doc.s3.amazonaws.com/2006-03-01"
	// multipartNamespace is that of multipart uploads, except for lists. Recordings have both.
	// Google's client for Python requires this one.
	multipartNamespace = "http://s3.amazonaws.com/doc/2006-03-01/"
)

type xmlObjectList struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	Namespace             string   `xml:"xmlns,attr"`
	Name                  string
	Prefix                string
	Delimiter             string `xml:",omitempty"`
	MaxKeys               int
	KeyCount              int
	IsTruncated           bool
	NextMarker            string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	Contents              []xmlContents
	CommonPrefixes        []xmlPrefix
}

type xmlContents struct {
	Key            string
	Generation     int64
	MetaGeneration int64
	LastModified   string
	ETag           string
	Size           int64
}

type xmlPrefix struct{ Prefix string }

func xmlListing(q *request, l listQuery, p page) *reply {
	out := xmlObjectList{
		Namespace: xmlNamespace, Name: q.bucket, Prefix: l.prefix, Delimiter: l.delimiter, MaxKeys: l.limit,
		KeyCount: len(p.objects) + len(p.prefixes), IsTruncated: p.next != "", NextMarker: p.next,
	}
	if p.next != "" {
		out.NextContinuationToken = pageToken(p.next)
	}
	for _, o := range p.objects {
		out.Contents = append(out.Contents, xmlContents{o.Name, o.Generation, o.Metageneration, o.Updated.Format(timeFormat), o.xmlTag(), o.Size})
	}
	for _, prefix := range p.prefixes {
		out.CommonPrefixes = append(out.CommonPrefixes, xmlPrefix{prefix})
	}
	return xmlReply(http.StatusOK, out)
}

type xmlBucketList struct {
	XMLName   xml.Name    `xml:"ListAllMyBucketsResult"`
	Namespace string      `xml:"xmlns,attr"`
	Buckets   []xmlBucket `xml:"Buckets>Bucket"`
}

type xmlBucket struct {
	Name         string
	CreationDate string
}

func xmlBuckets(list bucketList) *reply {
	out := xmlBucketList{Namespace: xmlNamespace}
	for _, b := range list.Items {
		out.Buckets = append(out.Buckets, xmlBucket{b.Name, b.TimeCreated.Format(timeFormat)})
	}
	return xmlReply(http.StatusOK, out)
}
