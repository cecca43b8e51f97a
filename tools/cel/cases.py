# ruff: noqa: E501, RUF001
"""Rules of CustomResourceDefinitions, and values to ask them about: what `record.py` shows to the real API server.

A case is a schema, a rule for it, and values of it, each perhaps with the value before. The subjects follow what the
public corpora of CEL and Kubernetes test: the functions of each library with the values at their edges, types and
faults of types, escapes, limits of cost, and what is read of the value before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

Doc = dict[str, Any]
_ABSENT = object()


class Case(NamedTuple):
    schema: Doc
    rule: Doc
    values: list[Any]
    """Values, or pairs of a value and the one before as `Step`."""
    root: bool = False


class Step(NamedTuple):
    new: Any
    old: Any


def text(**more: Any) -> Doc:
    return {"type": "string", **more}


def integer(**more: Any) -> Doc:
    return {"type": "integer", **more}


def array(items: Doc, **more: Any) -> Doc:
    return {"type": "array", "items": items, "maxItems": 10, **more}


def mapping(values: Doc, **more: Any) -> Doc:
    return {"type": "object", "additionalProperties": values, "maxProperties": 10, **more}


def record(required: tuple[str, ...] = (), **properties: Doc) -> Doc:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


T, N = text(maxLength=64), {"type": "number"}
POINT = record(x=integer(), y=integer())
WIDE = record(
    s=T,
    t=T,
    i=integer(),
    j=integer(),
    d=N,
    b={"type": "boolean"},
    l=array(integer()),
    ls=array(T),
    m=mapping(T),
    mi=mapping(integer()),
    p=POINT,
    q=POINT,
    ps=array(POINT),
    by=text(format="byte", maxLength=64),
    date=text(format="date"),
    at=text(format="date-time"),
    dur=text(format="duration"),
    ios={"x-kubernetes-int-or-string": True},
    nul=integer(nullable=True),
    e=text(enum=["a", "bb"]),
)
FULL = {
    "s": "hello", "t": "h", "i": 3, "j": 4, "d": 1.5, "b": True, "l": [3, 1, 2], "ls": ["b", "a", "c"],
    "m": {"k1": "v1", "k2": "v2"}, "mi": {"a": 1, "b": 2}, "p": {"x": 1, "y": 2}, "q": {"x": 1, "y": 2},
    "ps": [{"x": 1, "y": 1}, {"x": 2, "y": 5}], "by": "aGVsbG8=", "date": "2024-02-29", "at": "2024-02-29T12:30:45Z",
    "dur": "1h30m", "ios": "50%", "e": "bb",
}  # fmt: skip
OTHER = {**FULL, "s": "", "t": "zzz", "i": -7, "j": 0, "d": -0.5, "b": False, "l": [], "ls": ["x"], "m": {}, "mi": {"z": -1},
         "q": {"x": 2}, "ps": [], "by": "aGk=", "date": "1999-12-31", "at": "1999-12-31T23:59:59.5+02:00", "dur": "0s",
         "ios": 7, "e": "a"}  # fmt: skip
BARE: Doc = {}

WIDE_RULES = r"""
self.i > 0
self.i + self.j == 7
self.i - self.j == -1
self.i * self.j == 12
self.i / 2 == 1
self.i % 2 == 1
self.i / self.j == 0
self.i % self.j == 3
-self.i == -3
self.i == 3.0
self.i < self.d
self.d > self.i
self.d + 1.0 == 2.5
self.d / 0.0 > 1.0
double(self.i) == 3.0
int(self.d) == 1
uint(self.i) == 3u
string(self.i) == '3'
string(self.d) == '1.5'
string(self.b) == 'true'
int('12') + self.i == 15
int(self.s) == 1
double(self.s) == 1.0
bool(self.s)
self.i + 9223372036854775807 > 0
self.i - 9223372036854775807 < 0
self.i * 9223372036854775807 > 0
self.b
!self.b
self.b && self.i > 0
self.b || self.i / self.j == 0
self.i / self.j == 0 || self.b
self.i / self.j == 0 && self.b
self.b ? self.i == 3 : self.j == 0
self.i == 3 ? self.s == 'hello' : self.t == 'zzz'
self.s == 'hello'
self.s != self.t
self.s + self.t == 'helloh'
self.s < self.t
self.s >= 'h'
size(self.s) == 5
self.s.size() == 5
self.s.startsWith('he')
self.s.endsWith(self.t)
self.s.contains('ell')
self.s.matches('^h.*o$')
self.s.matches('[')
self.s.matches(self.t)
self.s.charAt(1) == 'e'
self.s.charAt(5) == ''
self.s.charAt(9) == ''
self.s.indexOf('l') == 2
self.s.indexOf('l', 3) == 3
self.s.indexOf('l', 12) == 3
self.s.lastIndexOf('l') == 3
self.s.lastIndexOf('l', 2) == 2
self.s.lowerAscii() == 'hello'
self.s.upperAscii() == 'HELLO'
self.s.replace('l', 'L') == 'heLLo'
self.s.replace('l', 'L', 1) == 'heLlo'
self.s.replace('', '-') == '-h-e-l-l-o-'
self.s.split('l') == ['he', '', 'o']
self.s.split('l', 2) == ['he', 'lo']
self.s.split('').size() == 5
self.s.split('l', 0).size() == 0
self.s.substring(2) == 'llo'
self.s.substring(1, 3) == 'el'
self.s.substring(3, 1) == ''
self.s.substring(0, 99) == ''
'  x '.trim() == 'x'
self.ls.join() == 'bac'
self.ls.join('-') == 'b-a-c'
strings.quote(self.s) == '"hello"'
'%s has %d'.format([self.s, self.i]) == 'hello has 3'
'%.2f'.format([self.d]) == '1.50'
'%x'.format([255]) == 'ff'
'%s'.format([self.l]) == '[3, 1, 2]'
'%s'.format([self.b]) == 'true'
'%e'.format([self.d]) == '1.500000e+00'
'%b'.format([self.i]) == '11'
'%o'.format([self.i]) == '3'
'%X'.format([self.s]) == '68656C6C6F'
self.s.find('l+') == 'll'
self.s.find('z') == ''
self.s.findAll('l') == ['l', 'l']
self.s.findAll('l', 1) == ['l']
self.l.size() == 3
size(self.l) == 3
self.l[0] == 3
self.l[5] == 3
self.l[self.i - 1] == 2
3 in self.l
self.i in self.l
!(9 in self.l)
self.l + [4] == [3, 1, 2, 4]
self.l == [3, 1, 2]
self.l.all(x, x > 0)
self.l.exists(x, x == 2)
self.l.exists_one(x, x > 2)
self.l.filter(x, x > 1) == [3, 2]
self.l.map(x, x * 2) == [6, 2, 4]
self.l.map(x, x > 1, x * 2) == [6, 4]
self.l.all(x, 10 / x > 0)
self.l.exists(x, 1 / (x - 3) == 0 || x == 1)
self.l.all(i, v, v > i)
self.l.exists(i, v, v == i)
self.l.existsOne(i, v, v == 3)
self.l.transformList(i, v, v + i) == [3, 2, 4]
self.l.transformList(i, v, i > 0, v) == [1, 2]
self.mi.transformMap(k, v, v + 1) == {'a': 2, 'b': 3}
self.mi.transformMap(k, v, v > 1, v) == {'b': 2}
self.mi.transformMapEntry(k, v, {k + '!': v}).size() == 2
self.mi.transformList(k, v, v).sum() == 3
self.mi.all(k, v, v > 0)
self.mi.exists(k, v, k == 'a' && v == 1)
self.l.isSorted()
self.ls.isSorted()
self.l.sum() == 6
self.l.min() == 1
self.l.max() == 3
self.l.indexOf(1) == 1
self.l.lastIndexOf(2) == 2
self.l.sort() == [1, 2, 3]
self.l.sortBy(x, -x) == [3, 2, 1]
self.ps.sortBy(p, p.y)[0].x == 1
self.l.reverse() == [2, 1, 3]
self.l.slice(0, 2) == [3, 1]
self.l.slice(2, 9) == [3]
self.l.slice(-1, 1) == []
self.l.distinct().size() == 3
[1, 1, 2].distinct() == [1, 2]
[[1], [2, 3]].flatten() == [1, 2, 3]
[[1, [2]], [3]].flatten(2).size() == 3
lists.range(3) == [0, 1, 2]
self.l.first().orValue(0) == 3
self.l.last().orValue(0) == 2
self.l.first().value() == 3
sets.contains(self.l, [1])
sets.equivalent(self.l, [1, 2, 3])
sets.intersects(self.l, [9, 3])
'k1' in self.m
self.m['k1'] == 'v1'
self.m.k1 == 'v1'
self.m['nope'] == 'v1'
self.m.all(k, k.startsWith('k'))
self.m.exists(k, self.m[k] == 'v2')
self.m.size() == 2
self.m == {'k1': 'v1', 'k2': 'v2'}
self.m.map(k, k).size() == 2
self.m.filter(k, self.m[k] == 'v1') == ['k1']
has(self.s)
has(self.m.k1)
has(self.p.x)
!has(self.nul)
has(self.nul) && self.nul > 1
self.?s.hasValue()
self.?s.orValue('none') == 'hello'
self.?p.?y.orValue(0) == 2
self.m[?'k1'].orValue('') == 'v1'
self.l[?0].hasValue()
self.l[?7].hasValue()
self.?s.optMap(v, v + '!').orValue('') == 'hello!'
self.?p.optFlatMap(p, p.?x).orValue(-1) == 1
self.?nul.or(optional.of(1)).value() == 1
optional.none().orValue(3) == 3
optional.ofNonZeroValue(self.i).hasValue()
optional.ofNonZeroValue(self.s).hasValue()
[?self.?s, 'x'].size() == 2
{?'a': self.?s}.size() == 1
[optional.of(1), optional.none()].unwrap() == [1]
optional.unwrap([optional.of(self.i)]) == [3]
self.?s.value() == 'hello'
self.p == self.q
self.p.x == self.q.x
self.p.y == self.q.y
self.ps[0] == self.p
self.ps.all(p, p.x <= p.y)
self.ps.exists(p, p == self.p)
self.ps.map(p, p.x).sum() == 3
self.ps.filter(p, p.y > 1).size() == 1
self.p in self.ps
self.by == b'hello'
size(self.by) == 5
string(self.by) == 'hello'
bytes(self.s) == self.by
self.date == timestamp('2024-02-29T00:00:00Z')
self.date.getFullYear() == 2024
self.at.getMonth() == 1
self.at.getDate() == 29
self.at.getDayOfMonth() == 28
self.at.getDayOfWeek() == 4
self.at.getDayOfYear() == 59
self.at.getHours() == 12
self.at.getMinutes() == 30
self.at.getSeconds() == 45
self.at.getMilliseconds() == 0
self.at.getHours('America/New_York') == 7
self.at.getHours('-02:00') == 10
self.at.getHours('Nowhere/Land') == 10
self.at > timestamp('2020-01-01T00:00:00Z')
self.at - timestamp('2024-02-29T12:30:00Z') == duration('45s')
self.at + duration('1h') > self.at
string(self.at) == '2024-02-29T12:30:45Z'
int(self.at) == 1709209845
self.dur == duration('90m')
self.dur.getHours() == 1
self.dur.getMinutes() == 90
self.dur.getSeconds() == 5400
self.dur.getMilliseconds() == 5400000
self.dur > duration('1h')
self.dur + duration('30m') == duration('2h')
string(self.dur) == '5400s'
self.dur / 2 == duration('45m')
type(self.ios) == string
type(self.ios) == int
self.ios == '50%'
self.ios == 7
type(self.ios) == int ? self.ios < 10 : self.ios.endsWith('%')
self.ios + 1 == 8
self.ios < 10
self.ios.size() == 3
string(self.ios) == '7'
self.e in ['a', 'bb']
type(self.i) == int
type(self.p) == map
type(self.l) == list
type(type(self.i)) == type
type(self.d) == double
dyn(self.i) == 3
dyn(self.s) > 1
dyn([1, 'a']).size() == 2
[dyn(1), dyn('a')].size() == 2
quantity('1Gi') == quantity('1024Mi')
quantity(self.s).asInteger() == 3
isQuantity(self.s)
isQuantity('500m')
quantity('1500m').isGreaterThan(quantity('1'))
quantity('1500m').isLessThan(quantity('2'))
quantity('1k').compareTo(quantity('1000')) == 0
quantity('1.5').isInteger()
quantity('1.5').asInteger() == 1
quantity('50').asInteger() == 50
quantity('1.5').asApproximateFloat() == 1.5
quantity('-1').sign() == -1
sign(quantity('-1')) == -1
quantity('50').add(quantity('20')) == quantity('70')
quantity('50').add(self.i) == quantity('53')
quantity('50').sub(20) == quantity('30')
isSemver('1.2.3')
isSemver('1.2')
isSemver('v1.2', true)
semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3
semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))
semver('v1', true).compareTo(semver('1.0.0')) == 0
semver('1.0').major() == 1
semver('01.0.0').major() == 1
isURL('https://example.com/x?y=z')
isURL(self.s)
url('https://user:pw@example.com:80/a b?x=1&x=2').getHost() == 'example.com:80'
url('https://example.com:80/').getHostname() == 'example.com'
url('https://[::1]:80/').getHostname() == '::1'
url('https://example.com:80/').getPort() == '80'
url('https://example.com/').getPort() == ''
url('https://example.com/').getScheme() == 'https'
url('https://example.com/with space/').getEscapedPath() == '/with%20space/'
url('https://example.com/?k1=a&k2=b&k2=c').getQuery()['k2'] == ['b', 'c']
url('/absolute/path').getHost() == ''
url(self.s).getHost() == ''
url('../relative').getHost() == ''
isIP('127.0.0.1')
isIP('::1')
isIP('127.0.0.256')
isIP(self.s)
ip('127.0.0.1').isLoopback()
ip('0.0.0.0').isUnspecified()
ip('224.0.0.1').isLinkLocalMulticast()
ip('169.254.169.254').isLinkLocalUnicast()
ip('192.168.0.1').isGlobalUnicast()
ip('::1').family() == 6
ip(self.s).family() == 4
ip('10.0.0.1') == ip('10.0.0.1')
ip.isCanonical('127.0.0.1')
ip.isCanonical('2001:DB8::ABCD')
string(ip('127.0.0.1')) == '127.0.0.1'
type(ip('127.0.0.1')) == net.IP
isCIDR('10.0.0.0/8')
isCIDR('10.0.0.0')
isCIDR(self.s)
cidr('10.0.0.0/8').containsIP('10.1.2.3')
cidr('10.0.0.0/8').containsIP(ip('11.1.2.3'))
cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')
cidr('10.0.0.0/8').containsCIDR(cidr('11.1.0.0/16'))
cidr('192.168.1.5/24').ip() == ip('192.168.1.5')
cidr('192.168.1.5/24').masked() == cidr('192.168.1.0/24')
cidr('192.168.1.0/24').prefixLength() == 24
string(cidr('192.168.1.0/24')) == '192.168.1.0/24'
cidr(self.s).prefixLength() == 3
format.dns1123Label().validate(self.s).hasValue()
!format.dns1123Label().validate('Hello').hasValue()
format.dns1123Subdomain().validate('a.b').orValue([]).size() == 0
format.dns1035Label().validate('1a').hasValue()
format.qualifiedName().validate('a/b').hasValue()
format.dns1123LabelPrefix().validate('a-').hasValue()
format.labelValue().validate('-a').hasValue()
format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue()
format.uuid().validate('nope').value() == ['does not match the UUID format']
format.date().validate('2024-02-30').hasValue()
format.datetime().validate('2024-02-29T12:30:45Z').hasValue()
format.byte().validate('aGVsbG8=').hasValue()
format.uri().validate('http://x').hasValue()
format.named('dns1123Label').hasValue()
format.named('nothing').hasValue()
format.named('dns1123Label').value().validate('A').hasValue()
self.s == "hello" && r'\d' == '\\d'
'é'.size() == 1 && bytes('é').size() == 2
'''tri'ple''' == 'tri\'ple'
0x1F == 31 && 1e3 == 1000.0 && .5 == 0.5
'\u00e9' == 'é'
null == null
self.i != null
[1, 2, 3].exists(x, x == self.i) // a comment
1 in [1, 2] && !(3 in {1: 2})
{'a': 1}.a == 1
{1: 'a'}[1] == 'a'
{'a': 1, 'a': 2}.size() == 1
duration('1h').getMinutes() == 60
timestamp('2024-01-01T00:00:00Z') < timestamp('2025-01-01T00:00:00Z')
has(self.ps) ? self.ps.size() > 0 : true
self.s.matches('(?i)HELLO')
self.s.matches('^[\\pL]+$')
self.ls.exists(s, s.matches('^[a-c]$'))
self.ls.map(s, s.upperAscii()) == ['B', 'A', 'C']
self.ls.all(s, self.ls.exists(t, s == t))
"""

EDGES = r"""
int('-9223372036854775808') == self.i
int('+5') == 5
int('0x10') == 16
int(' 5') == 5
int('1_000') == 1000
uint('-1') == 1u
uint('5') == 5u
uint(5.9) == 5u
int(5.9) == 5
int(-5.9) == -5
double('1e3') == 1000.0
double('NaN') == 1.0
double('inf') > 1.0
double(' 1') > 1.0
double('1_0') > 1.0
string(1.0) == '1'
string(1e21) == '1e+21'
string(1e20) == '100000000000000000000'
string(123456789.125) == '123456789.125'
string(0.000001) == '1e-06'
string(1e-7) == '1e-07'
string(-0.0) == '-0'
string(double('NaN')) == 'NaN'
string(1u) == '1'
string(b'abc') == 'abc'
string(timestamp('2024-01-01T00:00:00.5Z')) == '2024-01-01T00:00:00.5Z'
string(timestamp('2024-01-01T02:00:00+02:00')) == '2024-01-01T00:00:00Z'
string(duration('1.5s')) == '1.5s'
string(duration('-90m')) == '-5400s'
string(duration('1ns')) == '1e-09s'
duration('1h').getSeconds() == 3600
duration('-1.5s').getSeconds() == -1
duration('1.5s').getMilliseconds() == 1500
duration('100000h') > duration('1h')
duration('1h') - duration('30m') == duration('1800s')
-duration('1h') == duration('-3600s')
timestamp('2024-01-01T00:00:00Z') - duration('1h') == timestamp('2023-12-31T23:00:00Z')
timestamp(0) == timestamp('1970-01-01T00:00:00Z')
timestamp('0001-01-01T00:00:00Z') < timestamp('2024-01-01T00:00:00Z')
timestamp('9999-12-31T23:59:59Z') + duration('1h') > timestamp('2024-01-01T00:00:00Z')
timestamp('2024-01-01') > timestamp(0)
timestamp('2024-01-01T00:00:00') > timestamp(0)
timestamp('2024-01-01T00:00:00Z').getHours('Europe/Berlin') == 1
timestamp('2024-01-01T00:00:00Z').getHours('UTC') == 0
timestamp('2024-01-01T00:00:00Z').getHours('+05:30') == 5
timestamp('2024-01-01T00:00:00Z').getHours('05:30') == 5
timestamp('2024-01-01T00:00:00Z').getMinutes('-05:30') == 30
timestamp('2024-01-01T00:00:00.25Z').getMilliseconds() == 250
1 / 0 == 1
1 % 0 == 1
1.0 / 0.0 > 0.0
0.0 / 0.0 == 0.0
-7 / 2 == -3
-7 % 2 == -1
7 % -2 == 1
9223372036854775807 + 1 > 0
-9223372036854775808 - 1 > 0
-(-9223372036854775808) > 0
9223372036854775807 * 2 > 0
-9223372036854775808 / -1 > 0
18446744073709551615u + 1u > 0u
1u - 2u > 0u
0xFFu == 255u
-0x10 == -16
1 == 1u
1 == 1.0
1u == 1.0
1 < 1.5
2u > 1
[1] == [1.0]
{'a': 1} == {'a': 1.0}
[1, 2] == [2, 1]
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
'a' < 'b' && b'a' < b'b'
true > false
'abc'.contains('')
''.contains('a')
'abc'.startsWith('')
'abc'.substring(3) == ''
'abc'.substring(4) == ''
'abc'.substring(-1) == ''
'abc'.substring(1, 5) == ''
'abc'.charAt(-1) == 'a'
'abc'.indexOf('') == 0
'abc'.indexOf('', 5) == 5
'abc'.indexOf('c', -1) == 2
'abc'.lastIndexOf('') == 3
'abcabc'.lastIndexOf('abc', 2) == 0
'abcabc'.lastIndexOf('c', 4) == 2
''.split(',') == ['']
''.split('') == []
'a,b,c'.split(',', 1) == ['a,b,c']
'a,b,c'.split(',', -1) == ['a', 'b', 'c']
'a,b,c'.split(',', 5) == ['a', 'b', 'c']
'abc'.split('', 2) == ['a', 'bc']
'aaa'.replace('a', 'b', 0) == 'aaa'
'aaa'.replace('a', 'b', -1) == 'bbb'
'aaa'.replace('', '-', 2) == '-a-aa'
[].join(',') == ''
['a'].join() == 'a'
' \t\n x '.trim() == 'x'
'ÀÉ'.lowerAscii() == 'ÀÉ'
'ÀBC'.lowerAscii() == 'Àbc'
'日本語'.size() == 3
'日本語'.substring(1, 2) == '本'
'日本語'.reverse() == ''
'日本語'.charAt(2) == '語'
'😀'.size() == 1
strings.quote('a\n"b"\\') == '"a\\n\\"b\\"\\\\"'
strings.quote('é') == '"é"'
'%d'.format([1.0]) == '1'
'%d'.format(['a']) == '1'
'%d'.format([1u]) == '1'
'%s'.format([1.5]) == '1.5'
'%s'.format([null]) == 'null'
'%s'.format([b'a']) == 'a'
'%s'.format([{'b': 1, 'a': 2}]) == '{a: 2, b: 1}'
'%s'.format([['a', 'b']]) == '[a, b]'
'%s'.format([timestamp('2024-01-01T00:00:00Z')]) == '2024-01-01T00:00:00Z'
'%s'.format([duration('1h')]) == '3600s'
'%s'.format([type(1)]) == 'int'
'%s'.format([1e10]) == '10000000000'
'%f'.format([1.5]) == '1.500000'
'%.0f'.format([2.5]) == '2'
'%f'.format([1]) == '1.000000'
'%f'.format(['a']) == ''
'%f'.format([1.0/0.0]) == '∞'
'%b'.format([true]) == '1'
'%b'.format([-5]) == '-101'
'%x'.format([-255]) == '-ff'
'%X'.format(['hello']) == '68656C6C6F'
'%x'.format([b'hello']) == '68656c6c6f'
'%o'.format([8]) == '10'
'%%'.format([]) == '%'
'%'.format([]) == '%'
'%z'.format([1]) == ''
'%s'.format([]) == ''
'a'.format(['b']) == 'a'
'%s %s'.format(['a']) == 'a '
'x'.matches('')
'ab'.find('b*') == ''
'aab'.findAll('a') == ['a', 'a']
'aab'.findAll('a', 0) == []
'aab'.findAll('a', -1).size() == 2
'a1b2'.findAll('[0-9]') == ['1', '2']
'abc'.matches('^a.c$')
[].isSorted() && [1].isSorted()
[2, 1].isSorted()
['b', 'a'].isSorted()
[].sum() == 0
[1.5, 2.5].sum() == 4.0
[1u, 2u].sum() == 3u
[duration('1h'), duration('30m')].sum() == duration('90m')
[].min() == 0
['b', 'a'].min() == 'a'
[1, 2].max() == 2
[1, 2, 1].indexOf(1) == 0
[1, 2, 1].lastIndexOf(1) == 2
[1].indexOf(5) == -1
[3, 1].sort() == [1, 3]
['b', 'a'].sort() == ['a', 'b']
[1, 2, 3].slice(1, 1) == []
[1, 2, 3].slice(2, 1) == []
[1, 2, 3].slice(0, 4) == []
[[1], [2]].flatten().size() == 2
[[1, [2, [3]]]].flatten(5).size() == 3
[[1]].flatten(-1).size() == 1
[1, 2, 3].reverse() == [3, 2, 1]
[].first().hasValue()
[].last().orValue(1) == 1
lists.range(0) == []
lists.range(-1) == []
[1, 1.0, 1u].distinct().size() == 1
[dyn(1), dyn(1.0), dyn(1u)].distinct().size() == 1
sets.contains([], [])
sets.contains([1], [])
sets.intersects([], [])
sets.equivalent([1, 1], [1])
sets.contains([dyn(1)], [1.0])
optional.of(1).hasValue()
optional.none().hasValue()
optional.none().value() == 1
optional.of(optional.of(1)).value().value() == 1
optional.ofNonZeroValue(0).hasValue()
optional.ofNonZeroValue('').hasValue()
optional.ofNonZeroValue([]).hasValue()
optional.ofNonZeroValue({}).hasValue()
optional.ofNonZeroValue(duration('0s')).hasValue()
optional.ofNonZeroValue(null).hasValue()
optional.of(1).or(optional.of(2)).value() == 1
optional.of(1) == optional.of(1)
optional.of(1) == optional.none()
optional.none() == optional.none()
optional.of({'a': 1}).?a.orValue(0) == 1
optional.of({'a': 1}).a.orValue(0) == 1
optional.of([1])[0].orValue(0) == 1
optional.of([1])[?1].hasValue()
{'a': {'b': 1}}.?a.?b.orValue(0) == 1
{'a': {'b': 1}}.?c.?b.orValue(7) == 7
{'a': {'b': 1}}[?'a'].b.orValue(7) == 1
has({'a': 1}.a)
has({'a': 1}.b)
has({'a': {'b': 1}}.?a.b)
[?optional.none(), 1] == [1]
{?'a': optional.none()} == {}
{1: 2, 3: 4}[5] == 1
{'a': 1}['b'] == 1
{true: 1}[true] == 1
{1u: 1}[1] == 1
{1: 1}[1.0] == 1
[1, 2][1.0] == 2
[1, 2][-1] == 2
'a' in {'a': 1}
1.0 in [1, 2]
[1] in [[1], [2]]
{'a': 1}.map(k, k) == ['a']
{'a': 1, 'b': 2}.all(k, k in ['a', 'b'])
{'a': 1}.exists_one(k, k == 'a')
[1, 2, 3].exists_one(x, x / 0 == 1)
[1, 2, 3].all(x, x > 0 || x / 0 == 1)
[0, 1].all(x, 1 / x == 1)
[0, 1].exists(x, 1 / x == 1)
[1, 2].map(x, [x].map(y, y + x)) == [[2], [4]]
[1, 2].filter(x, x > 5) == []
[[1, 2], [3]].map(l, l.map(x, x * 2)) == [[2, 4], [6]]
[1, 2].transformMap(i, v, v * 2) == {0: 2, 1: 4}
['a', 'b'].transformMapEntry(i, v, {v: i}) == {'a': 0, 'b': 1}
['a', 'a'].transformMapEntry(i, v, {v: i}).size() == 1
{'a': 1}.transformMapEntry(k, v, {v: k}) == {1: 'a'}
(true || 1 / 0 == 1) && !(false && 1 / 0 == 1)
1 / 0 == 1 || true
1 / 0 == 1 && false
1 / 0 == 1 || false
true ? true : 1 / 0 == 1
type(1) == int && type('a') == string && type(null) == null_type
type([]) == list && type({}) == map && type(1u) == uint
type(duration('1s')) == google.protobuf.Duration
type(timestamp(0)) == google.protobuf.Timestamp
type(optional.of(1)) == optional_type
type(quantity('1')) == kubernetes.Quantity
type(type) == type
dyn(1) + dyn('a') == 1
dyn([1]) + dyn(1) == [1]
dyn('a') < dyn(1)
dyn(true) && true
dyn(1) && true
dyn('a').size() == 1
dyn(1).size() == 1
dyn({'a': 1}).a == 1
dyn({'a': 1}).b == 1
dyn([1])['a'] == 1
dyn({'a': 1})[1] == 1
dyn(1) in dyn([1])
!dyn(1)
dyn('a').startsWith(dyn(1))
quantity('1Ki').asInteger() == 1024
quantity('0.1').asApproximateFloat() == 0.1
quantity('1e3').asInteger() == 1000
quantity('-1').isLessThan(quantity('0'))
quantity('10Mi').compareTo(quantity('10M')) == 1
quantity('9999999999999999999').isInteger()
quantity('1n').asInteger() == 0
quantity('') == quantity('0')
quantity('1 Gi') == quantity('1')
quantity('1GiB') == quantity('1')
isQuantity('1.5.5')
isQuantity('+1')
isQuantity('')
quantity('5').sub(quantity('7')).asInteger() == -2
semver('1.2.3+build') == semver('1.2.3')
semver('1.2.3-a.b.1').isLessThan(semver('1.2.3-a.b.2'))
semver('1.0.0-alpha').isGreaterThan(semver('1.0.0-1'))
semver('V1.0.0', true).major() == 1
semver('') == semver('1.0.0')
semver('1.2.x').major() == 1
isSemver('1.2.3-01')
isSemver('v1.0.0')
isSemver('1', true)
isSemver('01.1', true)
ip('::ffff:1.2.3.4').family() == 4
ip('fe80::1%en0').family() == 6
ip('1.2.3').family() == 4
ip('1.2.3.4.5').family() == 4
ip('01.2.3.4').family() == 4
ip('a.b.c.d').family() == 4
ip('').family() == 4
ip('2001:db8::1') == ip('2001:DB8:0::1')
ip('2001:db8::1').isGlobalUnicast()
ip('ff02::1').isLinkLocalMulticast()
ip('fe80::1').isLinkLocalUnicast()
ip('255.255.255.255').isGlobalUnicast()
ip('10.0.0.1').isLoopback()
isIP('1.2.3.4/24')
cidr('10.0.0.0/33').prefixLength() == 33
cidr('10.0.0.0/a').prefixLength() == 1
cidr('10.0.0.0/08').prefixLength() == 8
cidr('a/8').prefixLength() == 8
cidr('::/0').containsIP('::1')
cidr('::/0').containsIP('1.2.3.4')
cidr('10.0.0.0/8').containsCIDR('10.0.0.0/7')
cidr('10.0.0.0/8').containsIP('nope')
cidr('10.0.0.0/8').containsCIDR('nope')
cidr('10.0.0.1/8') == cidr('10.0.0.0/8')
string(cidr('10.0.0.1/8')) == '10.0.0.1/8'
cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8')
url('http://example.com').getEscapedPath() == ''
url('http://example.com/%7Efoo').getEscapedPath() == '/%7Efoo'
url('http://u@example.com').getHost() == 'example.com'
url('mailto:a@b').getScheme() == 'mailto'
url('http://example.com/a?b').getQuery() == {'b': ['']}
url('http://example.com/#frag').getEscapedPath() == '/#frag'
url('http://exa mple.com').getHost() == ''
url('http://example.com:port/').getPort() == ''
url('HTTP://Example.com').getScheme() == 'http'
isURL('http://example.com:99999')
isURL('/a b')
isURL('http:///path')
isURL('http://[::1')
isURL('://x')
format.dns1123Label().validate('') == optional.none()
format.dns1123Label().validate('A').value().size() == 1
format.dns1123Label().validate('a'.replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')).value().size() == 1
format.qualifiedName().validate('a/b/c').value().size() == 1
format.qualifiedName().validate('').value().size() == 2
format.qualifiedName().validate('/a').hasValue()
format.uri().validate('nope').value() == ['parse "nope": invalid URI for request']
format.date().validate('2024-2-1').hasValue()
format.datetime().validate('2024-02-29').hasValue()
format.byte().validate('!').value() == ['invalid base64']
format.named('nope').orValue(format.dns1123Label()).validate('a').hasValue()
format.dns1123Label() == format.dns1123Label()
b'\x00\xff'.size() == 2
b'abc' + b'd' == b'abcd'
bytes('abc') == b'abc'
b'\303\251' == bytes('é')
'\x41\101\u0041\U00000041' == 'AAAA'
r'\n'.size() == 2
'a' 'b' == 'ab'
1 == 1 == true
1 < 2 < 3
!!true
--1 == 1
- 1 == -1
1 +-1 == 0
a.b.c == 1
.self.i == 3
self['i'] == 3
self.i.x == 1
self.l.x == 1
self.?l[0] == 3
self.?i + 1 == 4
'%e'.format([1.5]) == '1.500000×10⁰⁰'
'%e'.format([1.5]) == '1.500000\u2009×\u200910⁰⁰'
'%s'.format([['a', 'b']]) == '["a", "b"]'
'%s'.format([{'b': 1, 'a': 2}]) == '{"a":2, "b":1}'
'%s'.format([[duration('1h'), duration('2h')]]) == '[duration("3600s"), duration("7200s")]'
'%s'.format([1000000.0]) == '1e+06'
string(1234567.0) == '1.234567e+06'
string(123456.0) == '123456'
string(1e-5) == '1e-05'
'%.3f'.format([1.23456]) == '1.235'
'%.1e'.format([1.5]).size() > 1
'%d and %d'.format([1, self.i]) == '1 and 3'
'%s'.format([self.l, self.l]) == ''
'%d'.format([dyn('a')]) == ''
'%d'.format([self.s]) == ''
"""

REFUSED = r"""
self.x > 1
self.p.z == 1
self.ps[0].zz == 1
self.ps.all(p, p.nope > 1)
has(self.nope)
self.?nope.hasValue()
slf.i > 1
self.i
self.s
self.l
'text'
1
self.p
self.ios
self.i == 'a'
self.s == 1
self.i + self.s == 'a'
self.i + 1.5 == 2.0
self.s + 1 == 'a'
self.i && self.b
!self.i
self.b || self.s
self.b ? 1 : 2
self.b ? self.i == 1 : 'a'
self.i ? true : false
self.l[0] == 'a'
self.l['a'] == 1
'a' in self.l
self.m[1] == 'a'
1 in self.m
self.l.all(x, x)
self.l.all(x, y > 0)
self.l.all(1, true)
self.l.map(1, true).size() == 0
self.l.filter(x, x + 1).size() == 0
self.i.all(x, x > 0)
self.p.all(x, x == 'a')
self.s.all(x, x == 'a')
self.l.exists(x)
self.s.frobnicate()
frobnicate(self.s)
self.s.size(1) == 1
size() == 1
size(self.i) == 1
self.s.startsWith(1)
self.i.startsWith('a')
self.s.matches('(')
self.s.matches('a{2000}')
self.s.matches('(?=a)')
self.s.matches('(?<=a)b')
self.s.find('[') == ''
self.s.split(1) == []
self.l.join() == ''
self.l == self.ls
self.p == self.ps[0].x
self.p < self.q
self.p + self.q == self.p
self.m == self.mi
[1, 'a'].size() == 2
[1, 2.0].size() == 2
{'a': 1, 'b': 'c'}.size() == 2
{'a': 1, 2: 3}.size() == 2
duration('x') == self.dur
timestamp('x') == self.at
duration(1, 2) == self.dur
self.dur + 1 == self.dur
self.at + self.at == self.at
self.date.getHours(1) == 1
self.by == 'hello'
uint(-2) == 1u
int('x') == 1
quantity('1') == 1
quantity('1') > quantity('2')
quantity(1).isInteger()
quantity('1').foo
ip('1.2.3.4') == '1.2.3.4'
ip('1.2.3.4').prefixLength() == 1
cidr(1).masked() == cidr('10.0.0.0/8')
url('http://x').host == 'x'
semver('1.2.3') > semver('1.0.0')
semver('1.2.3', 1).major() == 1
format.nope().validate('x').hasValue()
format.dns1123Label().validate(1).hasValue()
optional.of(1) == 1
self.?s == 'a'
self.?s + 'a' == 'b'
self.?s.value() == 1
optional.of(1).foo()
sets.contains(self.l, ['a'])
sets.contains(self.l)
cel.bind(x, 1, x > 0)
math.greatest(1, 2) == 2
base64.encode(b'x') == ''
self.s.reverse() == 'olleh'
self.l.transformMap(i, 1).size() == 0
self.mi.transformList(k, v).size() == 0
self.check('x')
authorizer.path('/').check('get').allowed()
self.if
if == 1
self.s ==
self.s == 'a
self.s === 'a'
(self.i > 1
self.i > 1)
self.l[
self.i > 1 &&
self.i @ 2
1 + + 2
self.s == "a\q"
99999999999999999999 > 1
1e400 > 0.0
[1, 2
{'a' 1}
x.y.z
object{}.a == 1
type(self.p) == object
self.p.x.y == 1
self.s.foo == 1
self.metadata.name == 'a'
string(self.p) == 'a'
int(self.b) == 1
bool(self.i)
self.i < 'a'
self.b < self.i
self.l < self.l
-self.s == 'a'
-self.b
self.s * 2 == 'aa'
self.d % 2.0 == 0.0
self.l - self.l == []
lists.range('a').size() == 1
self.l.slice(1).size() == 1
self.l.sortBy(x, [x]).size() == 1
self.ps.sort().size() == 1
self.ps.isSorted()
self.ps.sum() == 1
self.ls.sum() == 'a'
self.l.flatten().size() == 1
self.l.indexOf('a') == 1
'%d'.format(self.i) == '1'
"""

_UNKNOWN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
_KEYED = array(
    record(("name",), name=T, v=integer()), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
)
_SET = array(T, **{"x-kubernetes-list-type": "set"})
_NAMES = record(
    **{
        "namespace": T,
        "a-b": T,
        "a.b": T,
        "a/b": T,
        "a__b": T,
        "in": T,
        "1a": T,
        "a b": T,
        "__": T,
        "plain_": T,
    }
)
_ODD = {"namespace": "n", "a-b": "1", "a.b": "2", "a/b": "3", "a__b": "4", "in": "5", "__": "6", "plain_": "7"}
_LOOSE = array(text())
_ENDLESS = {"type": "array", "items": text()}


def _others() -> Iterator[Case]:
    yield from _of(
        _NAMES,
        """
        self.__namespace__ == 'n'
        self.a__dash__b == '1'
        self.a__dot__b == '2'
        self.a__slash__b == '3'
        self.a__underscores__b == '4'
        self.__in__ == '5'
        self.__underscores__ == '6'
        self.plain_ == '7'
        self.namespace == 'n'
        self.a__b == '4'
        self.a-b == '1'
        self.in == '5'
        has(self.a__dash__b)
        self == self
    """,
        [_ODD, {}],
    )
    yield from _of(
        _UNKNOWN, "self == self\nself.a == 1\nhas(self.a)\ntype(self) == map\nself.size() == 1", [{"a": 1}, {}]
    )
    yield from _of(
        _EMBEDDED,
        "self.kind == 'Pod'\nself.metadata.name == 'a'\nself.metadata.namespace == 'a'\n"
        "self.apiVersion == 'v1'\nself.spec.x == 1\nhas(self.metadata.generateName)",
        [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}],
    )
    yield from _of(
        record(u={"x-kubernetes-preserve-unknown-fields": True}, k=T),
        "self.u == 1\nself.k == 'a'\nhas(self.u)",
        [{"k": "a", "u": {"x": 1}}],
    )
    yield from _of(
        _KEYED,
        """
        self.all(e, e.v > 0)
        self.exists_one(e, e.name == 'a')
        self == [{'name': 'a', 'v': 1}]
        self.map(e, e.name).join(',') == 'a,b'
        self.all(e, !has(e.v) || e.v < 2)
    """,
        [[{"name": "a", "v": 1}, {"name": "b", "v": 2}], [{"name": "a"}]],
    )
    yield from _of(
        _SET,
        "self == ['b', 'a']\nself + ['a', 'c'] == ['a', 'b', 'c']\n'a' in self\nself.isSorted()",
        [["a", "b"], ["c"]],
    )
    yield from _of(T, "self == 'a'\nself.size() < 3\nself.foo == 1\nself > 1", ["a", "abcd"])
    yield from _of(integer(), "self > 1\nself == 2.0\nself.x == 1", [1, 2])
    yield from _of(N, "self > 1.0\nself > 1\nint(self) == 2", [1, 2.5, 2])
    yield from _of({"type": "boolean"}, "self", [True, False])
    yield from _of(
        {"x-kubernetes-int-or-string": True}, "type(self) == int\nself == 1\nself\nself.size() > 2\n!self", [1, "abc"]
    )
    yield from _of(text(format="duration"), "self < duration('1h')\nself == '1h'", ["1m", "2h"])
    yield from _of(
        text(format="date-time"),
        "self < timestamp('2024-01-01T00:00:00Z')",
        ["2023-05-05T01:02:03Z", "2025-05-05T01:02:03.25Z"],
    )
    yield from _of(text(format="date"), "self < timestamp('2024-01-01T00:00:00Z')", ["2023-05-05", "2025-05-05"])
    yield from _of(text(format="byte"), "self == b'hello'", ["aGVsbG8=", "aGVs"])
    yield from _of(integer(nullable=True), "self > 1", [None, 1, 2])
    yield from _of(
        array(integer(nullable=True)),
        "self.all(x, x == null || x > 1)\nself[0] == null\nself.all(x, type(x) == int)",
        [[None, 2], [1]],
    )
    yield from _of(
        mapping(integer()),
        "self.all(k, self[k] > 1)\nself.a > 1\nself.size() == 2\nself['b'] == 2",
        [{"a": 1, "b": 2}, {"a": 5}],
    )
    yield from _of(
        mapping(POINT),
        "self.all(k, self[k].x > 1)\nself.a.x > 1\nself.a.q == 1\nself.exists(k, v, v.y == 2)",
        [{"a": {"x": 1}}, {"a": {"x": 5, "y": 2}}],
    )
    steps = [Step({"x": 2, "y": 1}, {"x": 1, "y": 1}), Step({"x": 1, "y": 3}, {"x": 2, "y": 1}), {"x": 3}]
    yield from _of(
        POINT,
        """
        self.x >= oldSelf.x
        self == oldSelf
        self.y == oldSelf.y
        oldSelf.x == 1
        oldSelf.z == 1
        !has(oldSelf.y) || self.y == oldSelf.y
        self.x > 0 || oldSelf.x > 0
    """,
        steps,
    )
    for rule in (
        "oldSelf.hasValue() || self.x == 3",
        "oldSelf.optMap(o, o.x).orValue(0) < self.x",
        "!oldSelf.hasValue()",
        "oldSelf.x == 1",
        "oldSelf.?x.orValue(0) < self.x",
        "self.x == 1",
    ):
        yield Case(POINT, {"rule": rule, "optionalOldSelf": True}, [{"x": 3, "y": 1}, Step({"x": 4}, {"x": 3})])
    yield Case(POINT, {"rule": "self.x > 1", "optionalOldSelf": False}, [])
    keyed = {**_KEYED, "items": {**_KEYED["items"]}}
    for rule in ("self.v >= oldSelf.v", "self == oldSelf"):
        items = {**keyed["items"], "x-kubernetes-validations": [{"rule": rule}]}
        moved = [{"name": "b", "v": 1}, {"name": "a", "v": 5}]
        yield Case(
            {**keyed, "items": items}, {"rule": "true"}, [Step(moved, [{"name": "a", "v": 4}, {"name": "b", "v": 2}])]
        )
        plain = array({**POINT, "x-kubernetes-validations": [{"rule": rule.replace(".v", ".x")}]})
        yield Case(plain, {"rule": "true"}, [])
    inner = {**POINT, "x-kubernetes-validations": [{"rule": "self.x > oldSelf.x"}, {"rule": "self.y > 0"}]}

    yield Case(
        mapping(inner),
        {"rule": "true"},
        [{"a": {"x": 1, "y": 0}}, Step({"b": {"x": 5, "y": 1}}, {"b": {"x": 5, "y": 1}})],
    )
    yield from _messages()
    yield from _costs()
    yield from _roots()


def _messages() -> Iterator[Case]:
    bad = [{"x": 1, "y": 2}]
    for more in (
        {"message": "x is wrong"},
        {"message": "  padded  "},
        {"messageExpression": "'x is ' + string(self.x)"},
        {"messageExpression": "''"},
        {"messageExpression": "'a\\nb'", "message": "fallback"},
        {"messageExpression": "'  '"},
        {"messageExpression": "self.x > 1 ? 'a' : 1"},
        {"messageExpression": "self.x"},
        {"messageExpression": "self.z"},
        {"messageExpression": "string(1 / (self.x - 1))", "message": "fallback"},
        {"messageExpression": "'x' +"},
        {"messageExpression": " "},
        {"message": " "},
        {"message": "a\nb"},
        {"reason": "FieldValueForbidden"},
        {"reason": "FieldValueRequired"},
        {"reason": "FieldValueDuplicate"},
        {"reason": "FieldValueInvalid", "message": "m"},
        {"reason": "Nonsense"},
        {"fieldPath": ".x"},
        {"fieldPath": ".z"},
        {"fieldPath": "x"},
        {"fieldPath": "['x']"},
        {"fieldPath": "  "},
        {"fieldPath": ".x\n"},
        {"fieldPath": ".x", "reason": "FieldValueRequired", "message": "needed"},
    ):
        yield Case(POINT, {"rule": "self.x > 1", **more}, bad)
    yield Case(T, {"rule": "self == 'a'", "reason": "FieldValueDuplicate"}, ["b"])
    yield Case(T, {"rule": "self == 'a'", "messageExpression": "self + '!'"}, ["b"])
    yield Case(POINT, {"rule": "self.x > 1 &&\nself.y > 1"}, bad)
    yield Case(POINT, {"rule": "self.x > 1 &&\nself.y > 1", "message": "m"}, bad)
    yield Case(POINT, {"rule": "self.x > 1 &&\nself.nope > 1", "message": "m"}, bad)
    yield Case(POINT, {"rule": "  "}, bad)
    yield Case(record(m=mapping(integer()), n=POINT), {"rule": "false", "fieldPath": ".m['a.b']"}, [{"m": {}}])
    yield Case(record(m=mapping(integer()), n=POINT), {"rule": "false", "fieldPath": ".n.x"}, [{"m": {}}])
    yield Case(POINT, {"rule": "false", "messageExpression": "oldSelf.x == 1 ? 'one' : 'other'"}, [{"x": 1}])


def _costs() -> Iterator[Case]:
    yield from _of(
        _ENDLESS,
        """
        self.all(x, x == 'a')
        self.all(x, self.all(y, x == y))
        self.exists(x, x.matches('^a+$'))
        self.all(x, x.contains('b'))
        self.join(',').size() < 10
        self.size() < 5
        self.isSorted()
        self.map(x, x + x).size() > 1
    """,
        [["a"]],
    )
    yield from _of(
        _LOOSE,
        "self.all(x, x == 'a')\nself.all(x, self.all(y, x == y))\nself.exists(x, x.matches('^a+$'))\n"
        "self.all(x, x.contains(x))\nself.all(x, self.all(y, self.all(z, x + y == z)))",
        [["a"]],
    )
    yield from _of(
        {"type": "string"},
        "self.size() > 1\nself == 'abc'\nself.matches('a.*b.*c.*d.*e.*f')\nself.contains(self)\n"
        "self.split('').all(x, x == 'a')\nself.replace('a', 'bbb').contains('x')",
        ["abc"],
    )
    deep = {
        "type": "array",
        "items": {
            "type": "array",
            "items": {
                "type": "string",
                "x-kubernetes-validations": [{"rule": "self.contains('a') && self.matches('a*')"}],
            },
        },
    }
    yield Case(deep, {"rule": "self.size() > 0"}, [])
    yield Case({**deep, "maxItems": 10}, {"rule": "self.all(a, a.all(b, b == 'x'))"}, [])
    nested = array(array(array(text(maxLength=5))))
    yield Case(nested, {"rule": "self.all(a, a.all(b, b.all(c, c == 'a')))"}, [[[["a"]]]])
    yield Case(
        nested, {"rule": "self.all(a, self.all(b, self.all(c, self.all(d, self.all(e, self.all(f, a == b))))))"}, []
    )
    many = array(integer(), maxItems=1000)
    yield Case(many, {"rule": "self.all(a, self.all(b, a >= b))"}, [[0] * 300, list(range(5))])
    yield Case(many, {"rule": "self.all(a, self.exists(b, a == b))"}, [list(range(300)), list(range(700))])
    big = array(integer(), maxItems=400)
    yield Case(big, {"rule": "self.all(a, self.all(b, a + b >= 0))"}, [[1] * 400])
    yield Case(big, {"rule": "self.map(a, self.filter(b, a == b).size()).sum() > 0"}, [[1] * 400])
    yield Case(
        big, {"rule": "false", "messageExpression": "self.all(a, self.all(b, a + b >= 0)) ? 'a' : 'b'"}, [[1] * 400]
    )
    rules = array(
        {**array(integer(), maxItems=100), "x-kubernetes-validations": [{"rule": "self.all(a, self.all(b, a >= b))"}]},
        maxItems=100,
    )
    yield Case(rules, {"rule": "true"}, [[[1] * 100] * 40, [[1] * 100] * 100])
    yield Case(
        {**array(integer(), maxItems=100)},
        {"rule": "self.all(a, self.all(b, self.all(c, a + b >= c)))"},
        [[1] * 90, [1] * 9],
    )
    yield from _of(
        record(a=text(), b=text(), l={"type": "array", "items": integer()}),
        "self.a == self.b\nself.a + self.b == 'x'\nself.l == self.l\nself.l.all(x, x in self.l)\nself.a in ['x', 'y']\n"
        "self.a < self.b\n[self.a, self.b].exists(x, x.size() > 3)\nself.a.startsWith(self.b)",
        [],
    )


def _roots() -> Iterator[Case]:
    spec = {"type": "object", "properties": {"spec": POINT, "metadata": {"type": "object"}}}
    for rule in (
        "self.metadata.name == 'a'",
        "self.metadata.name.startsWith('tests')",
        "self.kind == 'Nope'",
        "self.metadata.labels.size() == 0",
        "self.spec.x > 1",
        "has(self.spec)",
        "self.status == 1",
        "self.apiVersion.endsWith('v1')",
    ):
        yield Case(spec, {"rule": rule}, [{"spec": {"x": 1}}, {"spec": {"x": 2}}, {}], root=True)


def _of(schema: Doc, rules: str, values: list[Any]) -> Iterator[Case]:
    for rule in rules.strip().splitlines():
        yield Case(schema, {"rule": rule.strip()}, values)


def cases() -> list[Case]:
    return [
        *_of(WIDE, WIDE_RULES, [FULL, OTHER, BARE]),
        *_of(WIDE, EDGES, [FULL]),
        *_of(WIDE, REFUSED, []),
        *_others(),
    ]
