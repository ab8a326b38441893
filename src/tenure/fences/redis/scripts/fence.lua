-- Compare a token with the fence of its scope, and make the write only if it passes: one atomic step (R31).
--
-- KEYS[1]   the fence: a hash of job, generation, sequence and write, without an expiry (R35)
-- KEYS[2..] what the write touches
-- ARGV[1]   the job whose token it is
-- ARGV[2]   its generation
-- ARGV[3]   the number of the write, 0 for an announcement
-- ARGV[4]   how far a generation may lie beyond the highest one met (R38)
-- ARGV[5]   a name of this very call, by which the client's own repeat of it is known
-- ARGV[6..] what the write is given
--
-- Generations and sequences travel as text of at most 15 digits, which a number in Lua holds exactly.
--
-- Answers: announced | applied, reply | repeated | failed, reason | malformed | damaged | expires
--          refused, job, generation, sequence: the mark that stood in the way, no more than "refused" without one

local function write(KEYS, ARGV)
--@write
end

local function rest(list, first)
  local part = {}
  for place = first, #list do
    part[#part + 1] = list[place]
  end
  return part
end

local function is_whole(text)
  return text and #text <= 15 and string.find(text, '^%d+$') ~= nil
end

if not (is_whole(ARGV[2]) and is_whole(ARGV[3])) then
  return {'malformed'}
end
local fence = KEYS[1]
local kind = redis.call('TYPE', fence).ok
if kind ~= 'none' and kind ~= 'hash' then
  return {'damaged'}
end
if redis.call('PTTL', fence) >= 0 then
  return {'expires'}
end
local mark = redis.call('HMGET', fence, 'job', 'generation', 'sequence', 'write')
if kind == 'hash' and not (mark[1] and is_whole(mark[2]) and is_whole(mark[3])) then
  return {'damaged'}
end

local generation, sequence = tonumber(ARGV[2]), tonumber(ARGV[3])
local met = tonumber(mark[2] or '0')
if (mark[1] or ARGV[1]) ~= ARGV[1] or generation < met or generation - met > tonumber(ARGV[4]) then
  return {'refused', mark[1], mark[2], mark[3]}
end
if mark[1] and generation == met then
  if sequence == 0 then
    return {'announced'}
  end
  local applied = tonumber(mark[3])
  if sequence == applied and mark[4] == ARGV[5] then
    return {'repeated'}
  end
  if sequence <= applied then
    return {'refused', mark[1], mark[2], mark[3]}
  end
end

local passed = {'announced'}
if sequence > 0 then
  local done, reply = pcall(write, rest(KEYS, 2), rest(ARGV, 6))
  local problem = type(reply) == 'table' and reply.err
  if problem or not done then
    return {'failed', problem or tostring(reply)}
  end
  passed = {'applied', reply}
end
-- The mark comes last: a write that failed leaves it as it was, so that its owner may repeat it.
local kept = redis.pcall(
  'HSET', fence, 'job', ARGV[1], 'generation', ARGV[2], 'sequence', ARGV[3], 'write', ARGV[5]
)
if type(kept) == 'table' and kept.err then
  return {'failed', kept.err}
end
return passed
